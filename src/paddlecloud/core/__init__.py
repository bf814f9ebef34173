"""The pure heart: what a job is, what may happen to it, and what it sees.

Here live values and functions of values only. What may not live here: I/O, a clock, the
environment, randomness, logging, threads, and imports of any other package of the project.
"""
