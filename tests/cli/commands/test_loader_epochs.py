"""``envkit loader-grid --start`` and ``--persistent-workers`` with simulated workers, and trainings with such settings."""

from __future__ import annotations

import json

import pytest

from runner.bench import record
from runner.bench.plan import Plan
from tests.cli.commands.conftest import words
from tests.cli.commands.test_loader_grid import measured

ALL = [
    f"loader-w2-b32-p2-{start}{stay}" for start in ("fork", "forkserver", "spawn") for stay in ("", "-persistent")
]
