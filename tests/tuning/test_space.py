"""What a choice in a space comes to."""

from __future__ import annotations

from envkit.tuning import space, space_file

from tests.tuning.planted_engine import SMALL_SPACE


def test_a_level_that_the_space_does_not_have_sets_nothing(tmp_path):
    """A record, or what nodes share, may name any: only what the space has is started."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_SPACE)
    small = space_file.read(path)
    known = space.profile(small, {"spin": "1000", "wait": "passive"}, "x")
    assert known is not None
    assert known.env == {"GOMP_SPINCOUNT": "1000", "OMP_WAIT_POLICY": "passive"}
    assert space.profile(small, {"spin": "1000; touch x"}, "x") is None
