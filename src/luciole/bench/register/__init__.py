"""Register: how fast schedules are declared, one by one and in bulk."""
