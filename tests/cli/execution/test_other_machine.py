"""A profile that won on another kind of machine than this one."""

from __future__ import annotations

import json

import pytest
from envkit.analysis.engine_facts import machine_kind
from envkit.cli.execution.messages import OtherMachine
from envkit.cli.execution.resolving import other_machine
from envkit.messages import from_json
from envkit.tuning.profile_file import MACHINE

HERE = {"fingerprint": {"cpu_model": "EPYC", "cpu_numbers": "1/2"}, "facts": {"usable_cpus": 2}}


@pytest.fixture
def tuned(tmp_path):
    """A profile beside which a tuning left this evidence."""

    def write(text):
        (tmp_path / "mine.evidence.json").write_text(text)
        return tmp_path / "mine.yaml"

    return write


@pytest.mark.parametrize("then", [{"cpu": "Xeon (6/8)", "usable_cpus": 2}, {"cpu": "EPYC (1/2)", "usable_cpus": 64}])
def test_another_kind(tuned, then):
    found = other_machine("mine", tuned(json.dumps({MACHINE: then})), HERE)
    assert found == OtherMachine("mine", then["cpu"], then["usable_cpus"], "EPYC (1/2)", 2)
    assert from_json(found.to_json()) == found


def test_the_same_kind(tuned):
    assert other_machine("mine", tuned(json.dumps({MACHINE: machine_kind(HERE)})), HERE) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"machine_kind": {"cpu": "x"}}', '{"machine_kind": 3}'])
def test_evidence_that_does_not_tell(tuned, text):
    assert other_machine("mine", tuned(text), HERE) is None


def test_a_shipped_profile_has_none(tmp_path):
    assert other_machine("jemalloc", tmp_path / "jemalloc.yaml", HERE) is None
