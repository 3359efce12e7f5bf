"""Probes: the floor of this machine, below which no program on it can get."""
