"""The README's pictures: a recorded terminal, the bars of the benchmarks, the drawing of the parts.

What lives here draws SVG files from what is stored (`terminal`, `figures`, `architecture`) or
records what is drawn (`session`). Nothing of it is installed, and nothing but the standard
library is needed to draw.
"""
