"""What is seen of a search while it goes on."""

from __future__ import annotations

import io
import re
import sys

import pytest
from envkit.messages import Printed
from envkit.tuning.events import parse_all
from envkit.tuning.live import View
from envkit.tuning.trial_store import BASELINE, TrialStore

from tests.records import USAGE

MEASURED = {"step_s": [1.0], "seconds": 1.0, "usage": USAGE, "evidence": {}, "losses": [], "digests": {}}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def store():
    events = [{"event": "warm-up", "worker_seconds": 5.0, **MEASURED}]
    for number, title in enumerate(("threads=2", "spin=0", "spin=1000")):
        events.append(
            {"event": "candidate", "number": number, "choice": {}, "shipped": None, "title": title, "environment": {}}
        )
    events.append({"event": "round", "order": [BASELINE, 0, 1, 2], "stage": "trials", "round": 0})
    for number, seconds in ((BASELINE, 1.0), (0, 0.8), (1, 0.5)):
        measured = {"step_s": [seconds], "seconds": seconds, "usage": USAGE, "worker_seconds": 20.0}
        events.append({"event": "trial", "round": 0, "candidate": number, **measured})
    events.append(
        {
            "event": "failure",
            "round": 0,
            "candidate": 2,
            "worker_seconds": 1.0,
            "problem": Printed("timed out").to_json(),
        }
    )
    return TrialStore.of(parse_all(events))


def test_elsewhere_than_on_a_terminal_each_round_is_a_line(store, capsys):
    with View(store, 540.0, quiet=False) as view:
        view.before("spin=7")
        view.after_round("trials")
    assert capsys.readouterr().err == (
        "round 1, trials: 3 candidates, 1 failed, 1 min 6 s of 9 min for the search; ahead after 1 trial: spin=0\n"
    )


def test_on_a_terminal_the_fastest_are_a_table(store, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with View(store, 540.0, quiet=False) as view:
        view.before("spin=7")
        shown = terminal.getvalue()
        view.after_round("trials")
    assert "now: spin=7" in shown
    assert shown.index("spin=0") < shown.index("threads=2")
    assert not re.search(r"\d\.\d", shown)  # no speedup: it has no interval yet
    assert "round 1" not in terminal.getvalue()


def test_quietly_nothing_is_said(store, capsys):
    with View(store, 540.0, quiet=True) as view:
        view.before("spin=7")
        view.after_round("trials")
    assert capsys.readouterr() == ("", "")
