"""How long a test waits for what must happen: against hanging for ever, and for nothing else.

A wait is no measurement (those are in bench/). A machine may run two suites, compile and train at
the same time, and then a server takes half a minute to start; so every wait is this long.
"""

from __future__ import annotations

PATIENCE_S = 180.0
