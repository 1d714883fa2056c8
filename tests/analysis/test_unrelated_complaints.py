"""Complaints of libraries that concern no profile: told of, and nothing more."""

from __future__ import annotations

import pytest
from envkit.analysis.finding_messages import UnrelatedComplaint
from envkit.analysis.findings import unrelated_complaints
from envkit.engines.measurement import Process
from envkit.profiles.environment import Environment

from tests import records
from tests.records import conclude

SITE = "ERROR: ld.so: object '/opt/site/x.so' from LD_PRELOAD cannot be preloaded (why): ignored."
PLACES = "libgomp: Invalid value for environment variable OMP_PLACES"


def printed(*stderr, **variables):
    evidence = {"openmp": {"runtime": "gnu"}, "variables": {}}
    environment = Environment("p", "", variables, {}, (), {}, "same")
    return [(environment, records.measured(evidence, stderr=text)) for text in stderr]


def test_one_finding_for_all_arms_and_samples():
    (found,) = unrelated_complaints([*printed(f"a\n{SITE}\nb", SITE), *printed(SITE)])
    assert (found.code, found.severity) == ("unrelated-complaint", "note")
    assert found.seen == UnrelatedComplaint(SITE)
    (found,) = unrelated_complaints(printed(f"{SITE}\n{PLACES}"))
    assert found.seen == UnrelatedComplaint(SITE, 1)


@pytest.mark.parametrize("stderr", ["", "chatter", PLACES])
def test_what_concerns_one_of_the_profiles_is_no_note(stderr):
    """It is a failure of that one, and the others printed it too."""
    assert unrelated_complaints([*printed(stderr), *printed(stderr, OMP_PLACES="x")]) == []


def test_ranks_have_their_evidence_each():
    rank = Process(evidence={"openmp": {"runtime": "gnu"}, "variables": {}})
    sample = records.measured({}, ranks=[rank], stderr=SITE)
    assert len(unrelated_complaints([(Environment("p", "", {}, {}, (), {}, "same"), sample)])) == 1


def test_a_run_with_such_a_complaint_is_in_effect():
    events = records.run_events(blocks=7)
    for event in events:
        if event["event"] == "sample":
            event["stderr"] = f"Thu Nov 26\n{SITE}\n"
    result = conclude(events)
    assert all(one.in_effect for one in result.measured)
    assert [one.code for one in result.findings if one.severity == "note"] == ["unrelated-complaint"]
    assert result.comparisons[0].speedup is not None


def test_a_library_that_the_caller_preloads_is_judged_by_what_is_mapped():
    line = "ERROR: ld.so: object '$LD_PRELOAD' from LD_PRELOAD cannot be preloaded (why): ignored."
    assert unrelated_complaints(printed(line)) == []
