"""Measuring: what a run is to measure, its blocks and samples, the measuring loop and the record."""
