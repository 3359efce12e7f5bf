"""Luciole: a durable, distributed job scheduler that proves its own speed and correctness."""
