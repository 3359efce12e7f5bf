"""Backlog: what is overdue when nodes come back, and what becomes due meanwhile."""
