"""Tricks with local files that the file store and the local engine share.

May live here: functions over directories and descriptors. May not: accounts, jobs, and what a path
means to them.
"""
