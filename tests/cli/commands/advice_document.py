"""The form of what ``envkit advise --json`` prints: the same keys however it ends, once the training was watched."""

from __future__ import annotations

import json
from types import NoneType
from typing import Any

# By the key of the document, what its value may be.
FORM = {
    "fix_first": (str, NoneType), "try_first": (str, NoneType), "symptoms": (dict,), "reasons": (list,),
    "disturbed": (list,), "expected": (list,), "unmeasured": (list,), "left_out": (dict,), "findings": (list,),
    "passed_on": (list,), "not_passed_on": (list,), "missing": (dict, NoneType), "race": (list, NoneType),
    "confirmation": (dict, NoneType), "record": (str, NoneType),
}  # fmt: skip
EXPECTED = {"profile": (str,), "gain": (float, NoneType), "low": (float, NoneType), "high": (float, NoneType)}
REASON, FINDING = {"code", "seen", "why"}, {"code", "severity", "seen", "why", "fix", "message"}
RACER = {"arm", "blocks", "speed", "left_after", "failed", "not_in_effect", "over_memory"}
MISSING = {"profiles", "libraries", "as_root", "not_as_root", "without_root", "only_root"}


def parsed(printed: str, failed: bool = False) -> dict[str, Any]:
    """Return the document that was printed, of the form above, with an ``error`` where the command failed."""
    document: dict[str, Any] = json.loads(printed)
    assert document.keys() == {*FORM, *(["error"] if failed else [])}
    wrong = {key: document[key] for key, kinds in FORM.items() if not isinstance(document[key], kinds)}
    assert not wrong
    for expectation in document["expected"]:
        assert expectation.keys() >= EXPECTED.keys()
        assert all(isinstance(expectation[key], kinds) for key, kinds in EXPECTED.items())
    assert all(reason.keys() == REASON for reason in document["reasons"])
    assert all(finding.keys() == FINDING for finding in document["findings"])
    assert all(racer.keys() == RACER for racer in document["race"] or ())
    assert document["missing"] is None or document["missing"].keys() == MISSING
    return document
