"""Values from outside against annotations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from envkit.common import codec
from envkit.common.file_messages import OtherType
from msgspec import Struct

from tests.refusals import refusal


class Inner(Struct):
    number: int | float | None = None


@dataclass
class Part:
    name: str
    sizes: tuple[float, ...] = ()


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (int, (0, 10**30), (True, 1.0, "1", None, [])),
        (float, (0, 1.5, math.nan), (True, "1", None)),
        (bool, (True,), (1, "true")),
        (str, ("",), (1, b"", None)),
        (str | None, ("", None), (1, [])),
        (dict[str, Any] | str, ({"a": []}, "x"), (1, [], None, {1: 2})),
        (list[float], ([], [1, 1.5]), ([True], [None], {})),
        (list[Inner], ([{}], [{"number": None, "other": []}]), ([{"number": "1"}], [1])),
        (tuple[str, ...], ((), ["a"]), ("a", [1])),
        (tuple[int, str], ([1, "a"],), ([1], [1, "a", 2], ["a", 1])),
        (dict[str, int | None], ({}, {"a": None}), ({"a": "1"}, [], {1: 1})),
        (dict[str, dict[str, float]], ({"a": {"b": 1}},), ({"a": 1}, {"a": {"b": "1"}})),
        (Part, ({"name": "a"}, {"name": "a", "sizes": [1.5]}), ({"name": 1}, {"name": "a", "sizes": ["x"]}, {}, None)),
        (int | float, (1, 1.5), (True, "1")),
        (float, (), (10**400,)),
        (Any, (1, None, []), ()),
    ],
)
def test_what_fits(hint, good, bad):
    assert [value for value in good if not codec.fits(value, hint)] == []
    assert [value for value in bad if codec.fits(value, hint)] == []


def test_the_first_misfit_is_named():
    assert codec.checked(Part("a")) == Part("a")
    assert refusal(codec.checked, Part("a", 7), error=codec.Misfit) == OtherType("sizes")
    codec.require({"number": 1, "unknown": object()}, Inner)
    codec.require({"number": 1.5}, Inner)
    assert refusal(codec.require, {"number": "1"}, Inner, error=codec.Misfit) == OtherType("number")
