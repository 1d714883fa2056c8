"""Observe a running training, explain what costs it time, and rank the profiles worth trying."""
