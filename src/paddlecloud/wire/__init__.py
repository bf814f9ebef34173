"""What both ends of a connection share: routes, JSON shapes, PFS paths, the package stream.

Here live values and pure functions over text and bytes, imported by the SDK and by the server so
that neither has a private copy. What may not live here: I/O, and who is allowed to do what.
"""
