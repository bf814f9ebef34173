"""`paddlecloud update`: finding, checking and switching to another release of this program.

May live here: what only this verb needs. May not: anything a running platform or job depends on.
"""
