"""Time, loops, randomness and telemetry: the only package that touches the real clock."""
