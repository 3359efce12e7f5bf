"""Drain: how fast one executor process works off one-off executions that are due at one instant."""
