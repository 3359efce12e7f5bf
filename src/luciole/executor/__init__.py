"""What runs handlers: the registry of them, the runs, and the sessions with the nodes. It knows no store."""
