"""What a profile needs of a machine, and what is said where the machine has not that."""

from __future__ import annotations

import pytest
from envkit import rendering
from envkit.profiles.messages import NeedsOther, NeedsText
from envkit.profiles.needs import described, from_facts, of_kind, together, unmet

FACTS = {"physical_cores": 4, "usable_cpus": 6, "numa_nodes": 1}
NOT_INTEL = {"not": "GenuineIntel"}
TWO = ["AuthenticAMD", "HygonGenuine"]


@pytest.mark.parametrize(
    ("wanted", "vendor", "problem"),
    [
        ("AuthenticAMD", "AuthenticAMD", None),
        ("AuthenticAMD", "GenuineIntel", NeedsText("cpu_vendor", ("AuthenticAMD",), "GenuineIntel")),
        (TWO, "HygonGenuine", None),
        (TWO, "GenuineIntel", NeedsText("cpu_vendor", tuple(TWO), "GenuineIntel")),
        (TWO, None, NeedsText("cpu_vendor", tuple(TWO), "unknown")),
        (NOT_INTEL, "AuthenticAMD", None),
        (NOT_INTEL, None, None),
        (NOT_INTEL, "GenuineIntel", NeedsOther("cpu_vendor", ("GenuineIntel",), "GenuineIntel")),
        ({"not": TWO}, "HygonGenuine",
         NeedsOther("cpu_vendor", tuple(TWO), "HygonGenuine")),
        ({**NOT_INTEL, "because": "a reason"}, "GenuineIntel",
         NeedsOther("cpu_vendor", ("GenuineIntel",), "GenuineIntel", "a reason")),
    ],
)  # fmt: skip
def test_a_kind_of_processor(wanted, vendor, problem):
    found = unmet({"cpu_vendor": wanted}, from_facts({**FACTS, "cpu_vendor": vendor}))
    assert found == (problem and ("cpu_vendor", problem))


def test_a_machine_whose_facts_have_no_vendor_is_of_an_unknown_one():
    assert from_facts(FACTS)["cpu_vendor"] is None


def test_the_first_that_is_unmet_is_told():
    wanted = {"physical_cores": 4, "numa_nodes": 2, "cpu_vendor": "AuthenticAMD"}
    assert unmet(wanted, from_facts(FACTS))[0] == "numa_nodes"
    assert unmet(of_kind(wanted), from_facts(FACTS))[0] == "cpu_vendor"


@pytest.mark.parametrize(
    ("needs", "both"),
    [
        ([], {}),
        ([{"gpus": 1}, {"gpus": 2, "numa_nodes": 2}], {"gpus": 2, "numa_nodes": 2}),
        ([{"cpu_vendor": NOT_INTEL}, {"gpus": 1}], {"cpu_vendor": NOT_INTEL, "gpus": 1}),
        ([{"cpu_vendor": NOT_INTEL}, {"cpu_vendor": NOT_INTEL}], {"cpu_vendor": NOT_INTEL}),
        ([{"cpu_vendor": TWO}, {"cpu_vendor": NOT_INTEL}], {"cpu_vendor": TWO}),
        ([{"cpu_vendor": {"not": "HygonGenuine"}}, {"cpu_vendor": TWO}], {"cpu_vendor": ["AuthenticAMD"]}),
        ([{"cpu_vendor": TWO}, {"cpu_vendor": "HygonGenuine"}], {"cpu_vendor": ["HygonGenuine"]}),
        ([{"cpu_vendor": {**NOT_INTEL, "because": "one"}}, {"cpu_vendor": {"not": TWO, "because": "other"}}],
         {"cpu_vendor": {"not": ["GenuineIntel", *TWO], "because": "one; other"}}),
        ([{"cpu_vendor": "AuthenticAMD"}, {"cpu_vendor": "GenuineIntel"}], None),
        ([{"cpu_vendor": "GenuineIntel"}, {"cpu_vendor": NOT_INTEL}], None),
    ],
)  # fmt: skip
def test_what_settings_need_together(needs, both):
    assert together(needs) == both


@pytest.mark.parametrize(
    ("fact", "wanted", "text"),
    [
        ("gpus", 2, "gpus of 2 or more"),
        ("cpu_vendor", TWO, "cpu_vendor AuthenticAMD or HygonGenuine"),
        ("cpu_vendor", NOT_INTEL, "a cpu_vendor other than GenuineIntel"),
        ("cpu_vendor", {**NOT_INTEL, "because": "a reason"}, "a cpu_vendor other than GenuineIntel, because a reason"),
    ],
)
def test_how_a_need_is_shown(fact, wanted, text):
    assert rendering.text(described(fact, wanted)) == text
