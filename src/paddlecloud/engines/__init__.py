"""Engines run jobs: two protocols, one reconcile loop, and a registry by cluster name.

May live here: code that starts, stops and observes replicas, and what drives it. May not:
HTTP, accounts, Django, or a decision that `core` or `scheduling` can make as a pure function.
"""
