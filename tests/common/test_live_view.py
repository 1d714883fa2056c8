"""Times as they are shown while something goes on."""

from __future__ import annotations

import pytest
from envkit.common.live_view import minutes


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (5.2, "0:05"), (59.7, "1:00"), (65, "1:05"), (600, "10:00")]
)
def test_minutes_and_seconds(seconds, shown):
    assert minutes(seconds) == shown
