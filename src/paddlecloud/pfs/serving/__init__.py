"""The server of the file store: one process, threads, no framework (`python -m ...pfs.serving`).

What may live here: HTTP over the store. What may not: how bytes are kept (that is `pfs` itself) and
anything of Django; the cloud server imports nothing of it but `table`.
"""
