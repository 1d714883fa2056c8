"""What earlier versions called things: read an old event, plan or baseline under today's names.

Schema 3 of records (``envkit.bench.record.SCHEMA``) and schema 2 of baselines say the same as those before, in other
words. Nothing after the readers knows the old ones: what is renamed again is one more line here.

Whether a name is old is seen from the name itself and not from the record's schema, because a run that an earlier
version began goes on in the same file. So no name here is old in one place and today's in another of the same event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]
KeyPath = tuple[str, ...]
# In a path: each value of a mapping, or each item of a list.
EACH = "*"
# The first schema of records that has today's names, and the default of what records before it may lack.
TODAY = 3
LACKING: Mapping[str, Any] = {"command": [], "cwd": None, "specification": None, "calibration": None}

# The margin of the first records, which did not say it.
FIRST_MARGIN = 0.02
# What became the plan's training of each workload, and its stopping rule.
TRAINING = ("warmup_steps", "steps", "data")
STOPPING = ("budget_s", "blocks", "precision", "margin", "timeout_s", "open_ended")

# What kinds of events were called.
KINDS: Mapping[str, str] = {
    "yardstick": "reference-kernel",
    "yardstick-failure": "reference-kernel-failure",
    "warmed": "warm-up",
    "look": "trial",
}
_EVIDENCE: Mapping[KeyPath, Mapping[str, str]] = {("evidence",): {"unseen": "not_observed"}}
# What was renamed in an event, by its kind as it is called today and by where in it.
EVENTS: Mapping[str, Mapping[KeyPath, Mapping[str, str]]] = {
    "run": {
        (): {"begun_in": "cwd", "kept_variables": "allowed_variables"},
        ("findings", EACH): {"mend": "fix"},
        ("engines", EACH, "inspection", "accelerator"): {"mend": "fix"},
    },
    "tune": {
        (): {"kept_variables": "allowed_variables"},
        ("settings",): {"look_steps": "trial_steps"},
        ("engines", EACH, "inspection", "accelerator"): {"mend": "fix"},
    },
    "end": {(): {"there": "previous_sha256"}},
    "sample": _EVIDENCE,
    "trial": _EVIDENCE,
    "warm-up": _EVIDENCE,
    "failure": _EVIDENCE,
}
# Values that were called otherwise, by the kind of event and the key.
VALUES: Mapping[str, Mapping[str, Mapping[str, str]]] = {"round": {"stage": {"looks": "trials"}}}
BASELINE: Mapping[KeyPath, Mapping[str, str]] = {
    (): {
        "yardstick": "reference_kernel",
        "kept_variables": "allowed_variables",
        "disturbed_blocks": "blocks_with_interference",
    },
    ("plan",): {"own": "user_command"},
    ("engines", EACH, "inspection", "accelerator"): {"mend": "fix"},
}


def event(document: Document) -> Document:
    """Return an event of a record under today's names; one that has them already as it is."""
    kind = KINDS.get(document["event"], document["event"])
    found = {**document, "event": kind} if kind != document["event"] else document
    found = _all_renamed(found, EVENTS.get(kind, {}))
    for key, names in VALUES.get(kind, {}).items():
        found = {**found, key: names.get(found[key], found[key])} if key in found else found
    if kind == "run" and found.get("schema", TODAY) < TODAY:
        found = {**LACKING, **found}
    if kind in ("run", "tune") and isinstance(found.get("plan"), dict):
        return {**found, "plan": plan(found["plan"])}
    return _tested(found) if kind == "sample" else found


def baseline(document: Document) -> Document:
    """Return what the file of a baseline holds under today's names. It need not be a valid one.

    Its plan is no run's: it has a few keys of that, and none of its groups.
    """
    return _all_renamed(document, BASELINE)


def plan(document: Document) -> Document:
    """Return the plan of a run under today's names and in today's groups. It need not be a valid one."""
    if "stopping" in document:
        return document
    try:
        return _grouped({"margin": FIRST_MARGIN, "blocks": 0, **document})
    except (LookupError, TypeError, AttributeError):
        return document  # whoever reads the plan says that it can't be used


def _grouped(document: Document) -> Document:
    """A plan of schema 2: its arms had '' and 0 for what they have no value of, and nothing in it was grouped."""
    arms = [{("cpu_shares" if key == "of" else key): value or None for key, value in arm.items()}
            for arm in document["arms"]]  # fmt: skip
    training = {key: document[key] for key in TRAINING}
    names = dict.fromkeys(arm.get("workload") or document["workload"] for arm in arms)
    rest = {key: value for key, value in document.items() if key not in (*TRAINING, *STOPPING, "own", "each")}
    return {
        "options": {},
        "more_references": [],
        **rest,
        "arms": arms,
        "workloads": document.get("each") or dict.fromkeys(names, training),
        "stopping": {key: document[key] for key in STOPPING if key in document},
        "user_command": document.get("own"),
    }


def _tested(sample: Document) -> Document:
    """The first records have the accuracy of a test alone, where later ones have all of its figures."""
    if "accuracy" not in sample:
        return sample
    rest = {key: value for key, value in sample.items() if key != "accuracy"}
    accuracy = sample["accuracy"]
    return {"quality": None if accuracy is None else {"accuracy": accuracy}, **rest}


def _all_renamed(document: Document, renamed: Mapping[KeyPath, Mapping[str, str]]) -> Document:
    for path, names in renamed.items():
        document = _renamed(document, path, names)
    return document


def _renamed(value: Any, path: Sequence[str], names: Mapping[str, str]) -> Any:
    """The same with other keys in what ``path`` leads to; what is not there, or no mapping, stays as it is."""
    if not path:
        known = isinstance(value, dict) and value.keys() & names.keys()
        return {names.get(key, key): inner for key, inner in value.items()} if known else value
    first, rest = path[0], path[1:]
    if first == EACH and isinstance(value, list):
        return [_renamed(one, rest, names) for one in value]
    if not isinstance(value, dict):
        return value
    steps = value.keys() if first == EACH else value.keys() & {first}
    return {**value, **{step: _renamed(value[step], rest, names) for step in steps}} if steps else value
