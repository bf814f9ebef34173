"""PaddleCloud: submit, watch and kill distributed training jobs, on one machine or a cluster.

This module is the version and nothing else: every start of the command line imports it first, so
it never imports anything. What lives where is said in the docstring of each package below it.
"""

__version__ = "0.1.0"
