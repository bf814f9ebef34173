"""Written forms of a job, each with `parse` and `render`: text or JSON in, `JobSpec` out.

Here live pure functions between a form and `core.jobspec.JobSpec`. A form reports all faults at
once, each in the words the user wrote. What may not live here: I/O, a clock, the environment,
and anything that decides what happens to a job after it was accepted.
"""
