"""Deciding: what two sets of figures allow to say about a change, and what not. Pure."""
