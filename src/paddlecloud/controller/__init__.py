"""The operator: makes pods of `PaddleJob` objects and keeps them as the objects say.

Here live the pure parts (`identity`, `peers`, `pods`, `observing`, `statuses`, `planning`: values
in, values out) and the edges that act (`acting`, `workers`, `operator`, `listening`). What may
not live here: rules of a job's life that are true on every engine, which are in `core`, and
anything that needs the server or its database.
"""
