"""Correctness in the server's own query language, without a line of the code that it judges."""
