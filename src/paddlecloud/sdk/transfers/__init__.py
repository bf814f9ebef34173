"""Moving files between this machine and `/pfs`: walking, planning, sending, fetching, resuming.

Reached through `Client.files` (`sdk.pfs`); nothing else imports it. Planning is pure; what touches
the disk or the network is in modules of its own. It never prints: it tells `events`.
"""
