"""Seals: good for the event as it was written, by this user, and for nothing else."""

from __future__ import annotations

import json
import os

import pytest
from envkit.bench import seal
from envkit.common import user_key
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EVENT = {"event": "run", "time": 1.5, "study": {"seed": 7, "engine_options": {"python": "/usr/bin/python3"}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def read_back(event):
    return json.loads(json.dumps(event))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.text(), JSON, max_size=4))
def test_an_event_that_is_read_back_is_good(fields):
    made = seal.sealed({**fields, "event": "run"})
    assert seal.is_good(read_back(made))
    assert seal.is_good(dict(reversed(read_back(made).items())))  # whatever the order of its keys


@pytest.mark.parametrize(
    "edit",
    [
        {"event": "tune"},
        {"time": 1.6},
        {"study": {"seed": 7, "engine_options": {"python": "/tmp/script"}}},
        {"study": {"seed": True, "engine_options": {"python": "/usr/bin/python3"}}},
        {"more": None},
        {"seal": "0" * 64},
        {"seal": None},
        {"seal": 7},
        {"seal": "\u00e9"},
        {"seal": ["a"]},
    ],
)
def test_an_edited_one_is_not(edit):
    assert not seal.is_good({**read_back(seal.sealed(EVENT)), **edit})


def test_one_without_a_seal_is_not():
    assert not seal.is_good(EVENT)


def test_another_users_is_not(monkeypatch, tmp_path):
    made = seal.sealed(EVENT)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert not seal.is_good(made)  # who has no key yet
    assert not user_key.path().exists()
    seal.sealed(EVENT)
    assert not seal.is_good(made)


def test_a_later_event_is_good_in_its_record_alone():
    first = seal.sealed(EVENT)["seal"]
    later = seal.sealed({"event": "resume"}, first)
    assert seal.is_good(later, first)
    assert not seal.is_good(later)
    assert not seal.is_good(later, "f" * 64)


def test_digests_of_values_tell_same_from_other_and_nothing_else(monkeypatch, tmp_path):
    values = {"A": "secret", "B": "secret", "C": "\udcff"}
    found = seal.value_digests(values, values)
    assert found == seal.value_digests(values, ["C", "B", "A"])
    assert len(set(found.values())) == 3
    assert found["A"] != seal.value_digests({"A": "other"}, ["A"])["A"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert found["A"] != seal.value_digests(values, ["A"])["A"]


def test_without_a_key_there_is_no_seal_and_no_digest(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    made = seal.sealed(EVENT)
    assert (made["seal"], seal.is_good(made)) == (None, False)
    assert seal.value_digests({"A": "secret"}, ["A"]) == {"A": None}
