"""The Django app of what the second generation keeps beside jobs: marks, sharing, sent files."""
