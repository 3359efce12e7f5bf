"""Stores: one contract, several technologies."""
