"""The cloud server: accounts, the REST interfaces, and the rows that remember every job.

May live here: the Django project, the ASGI front, services and routers. This is the only package
that imports Django. May not: anything that decides about jobs (that is `core` and `scheduling`),
and anything that runs them (that is `engines`).
"""
