"""What the server does, one module per matter; routers call one function each.

May live here: rows, files and engines brought together under one transaction. May not: HTTP,
JSON encoding of answers beyond plain dictionaries, or decisions about scheduling.
"""
