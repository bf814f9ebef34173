"""What is known of jobs: the wish of the user and what the engine was seen doing (rows only)."""
