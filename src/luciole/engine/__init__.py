"""The scheduler's loops: who is alive, who holds what, what fires, what is taken back, what is deleted."""
