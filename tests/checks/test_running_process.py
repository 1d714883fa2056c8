"""A process that is watched from outside, as ``envkit doctor -- COMMAND`` does."""

from __future__ import annotations

import subprocess

from runner.checks.doctor import running_process


def test_one_that_ended_is_not_watched_on():
    """Also where nobody has waited for it yet: what it did is counted over the time in which it ran."""
    with subprocess.Popen(["true"]) as process:
        seen = running_process.watch(process.pid, 30.0)
    assert seen["usage"]["seconds"] < 15
