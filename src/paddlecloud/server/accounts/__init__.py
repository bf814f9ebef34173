"""Who may use the platform: accounts, their tokens, their limits, and failed logins (rows only)."""
