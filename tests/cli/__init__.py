"""The command line against scripted servers: what it prints, byte by byte, and how it ends."""
