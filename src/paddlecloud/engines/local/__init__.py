"""The embedded engine: replicas are processes on this Linux machine.

May live here: processes, sandbox, cgroups, log files, the engine's own SQLite state. May not:
accounts, HTTP, and decisions, which come from `core` and `scheduling`.
"""
