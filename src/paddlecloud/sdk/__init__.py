"""The public Python client of a PaddleCloud server; everything the command line does, it does.

What may live here: HTTP, configuration and login of a client, packages and files on their way to
a server. What may not: anything that prints, needs more than the standard library, runs on only
one operating system, or knows how a server works inside.
"""

from paddlecloud.sdk.client import Client
from paddlecloud.sdk.config import Profile

__all__ = ["Client", "Profile"]
