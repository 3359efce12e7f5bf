"""The micro layer: what single steps cost in time and in work, each with the optimisation that it guards."""
