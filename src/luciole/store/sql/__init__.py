"""Stores that speak SQL: every transaction written once, dialects answer a few questions."""
