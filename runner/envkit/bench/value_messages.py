"""Text that stands for a value in a record."""

from __future__ import annotations

# Stands for the value of a variable of the caller's.
CALLERS = "the caller's value"
