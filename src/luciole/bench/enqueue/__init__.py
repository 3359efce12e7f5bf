"""Enqueue: what it costs to hand an execution over, alone, with a key, in bulk, and at instants of one's own."""
