"""Steady: a number of schedules of one period, their handlers on real executors, for as long as is asked."""
