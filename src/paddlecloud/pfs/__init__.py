"""The file store: a plain tree of directories, opened only beneath a home and never by link.

May live here: what touches files of users on behalf of the server and, later, the file server.
May not: accounts, HTTP, or a path that was not parsed by `wire.pfspath`.
"""
