"""Who runs now, at which size, and why the others wait: one pure function and its parts.

May live here: functions from a snapshot of a cluster to a plan, and words for people about it.
May not: I/O, clocks, randomness, or anything that knows processes, pods, HTTP or accounts.
"""
