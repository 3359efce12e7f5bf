"""Where the time of a window went, what limited it, and what would limit it next."""
