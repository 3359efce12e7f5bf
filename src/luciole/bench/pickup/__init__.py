"""Pickup: how long a single enqueue takes to the start of its handler, in an idle system."""
