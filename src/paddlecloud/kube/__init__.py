"""The only code that talks to a Kubernetes API server.

Here live the client (`client`, `kubeconfig`, `refusals`), what is built on it (`informers`,
`leases`) and the definitions of our resources (`definitions`). What may not live here: anything
that decides what happens to a job; that is `core` and `controller`.
"""
