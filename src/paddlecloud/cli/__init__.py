"""The command line: a client of `paddlecloud.sdk`, one module per verb, imported when used.

What may live here: flags, tables, words for people, and the starting and stopping of the embedded
platform. What may not: any request to a server that `sdk` cannot make, and any import that the
verb at hand does not need.
"""
