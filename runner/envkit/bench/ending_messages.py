"""Words for why a run ended. Its record, JSON documents and reports have them."""

from __future__ import annotations

BUDGET_USED_UP = "budget used up"
BLOCKS_MEASURED = "planned blocks measured"
WORKER_FAILED = "a worker failed"
NOT_IN_EFFECT = "not in effect"
BUDGET_TOO_SHORT = "the budget is too short"
