"""Tests of the server over real HTTP: a process of its own, with an engine that obeys a script."""
