"""What runs inside jobs, beside the user's program.

Here lives one file that jobs are given (`paddlecloud_runtime`), for any Python since 3.6 and with
need of nothing but itself, and its `delivery`. What may not live here: anything that needs the
rest of the package, a third party, or a newer Python.
"""
