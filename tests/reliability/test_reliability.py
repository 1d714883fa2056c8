"""Each fault of the list is made for real, and nothing may be lost, counted twice or left behind."""

from __future__ import annotations

import pytest

from tests.reliability.list import FAULTS
from tests.reliability.trial import CantPlant


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_is_lost(fault, tmp_path):
    try:
        finding = fault.try_out(tmp_path)
    except CantPlant as reason:
        pytest.skip(str(reason))
    assert finding.wrong == []


def test_the_names_are_different():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
