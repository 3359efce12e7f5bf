"""The bench tests itself: faults are planted, and each must be seen by the layer that should see it."""
