"""Tune the environment layer of PyTorch training and measure what it is worth."""

__version__ = "0.1.0"
