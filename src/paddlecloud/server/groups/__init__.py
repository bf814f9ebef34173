"""The Django app of resource groups: who is in them and what they may use."""
