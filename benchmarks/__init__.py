"""Measurements of the kit itself, on a real machine: each module is a script, ``python -m benchmarks.NAME --help``."""
