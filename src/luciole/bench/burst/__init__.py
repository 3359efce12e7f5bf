"""The burst: many schedules due at one instant, planned through the product's own path, then settled."""
