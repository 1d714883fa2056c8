"""A member of a TextEnum is its text wherever it is written, on every version of Python."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from envkit.analysis.baseline_diff import BaselineVerdict
from envkit.cluster.fleet.findings import NodeVerdict
from envkit.stats.verdict import Verdict


@pytest.mark.parametrize("one", [*Verdict, *BaselineVerdict, *NodeVerdict])
def test_it_is_written_as_its_text(one):
    text = one.value
    assert (type(str(one)), str(one)) == (str, text)
    assert (f"{one}", f"{one:>40}") == (text, f"{text:>40}")
    assert json.dumps({one: [one]}) == json.dumps({text: [text]})
    assert json.dumps({one: [one]}, indent=1) == json.dumps({text: [text]}, indent=1)


def test_it_is_found_by_its_text():
    assert Verdict("faster") is Verdict.FASTER
    assert {Verdict.FASTER: 1}["faster"] == 1
    assert Counter([Verdict.FASTER, "faster"]) == {"faster": 2}
