"""The demo: a few hundred schedules, a killed executor, and an audit that reads what the store says."""
