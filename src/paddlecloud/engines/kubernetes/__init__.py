"""The engine of a Kubernetes cluster: runs become custom resources, and their fate is told.

Here live rendering (`rendering`), reading (`reading`, `causes`), the memory (`journal`), logs and
the engine that ties them to an API server. What may not live here: decisions about a job's life;
those are the operator's, who makes the pods.
"""
