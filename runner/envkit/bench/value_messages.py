"""Words that a record holds in the place of a value."""

from __future__ import annotations

# In the place of the value of a variable of the caller's.
CALLERS = "the caller's value"
