"""Shipped fakes: engines that obey a script or misbehave on purpose.

May live here: stand-ins for the parts behind a protocol, for tests of ours and of users who embed
the platform. May not: anything the platform needs when it runs real jobs.
"""
