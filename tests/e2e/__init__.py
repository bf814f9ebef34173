"""End-to-end tests: the real command line, server, engine and processes."""
