"""What the server alone does with the rows of a burst: the bound that a share is taken of."""
