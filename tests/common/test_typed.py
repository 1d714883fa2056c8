"""Values from outside against annotations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from envkit.common import typed
from envkit.common.file_messages import OtherType

from tests.refusals import refusal


class Inner(TypedDict, total=False):
    number: int | None


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
        (list[float], ([], [1, 1.5]), ((), [True], [None], {})),
        (list[Inner], ([{}], [{"number": None, "other": []}]), ([{"number": "1"}], [1])),
        (tuple[str, ...], ((), ["a"]), ("a", [1])),
        (tuple[int, str], ([1, "a"],), ([1], [1, "a", 2], ["a", 1])),
        (dict[str, int | None], ({}, {"a": None}), ({"a": "1"}, [], {1: 1})),
        (dict[str, dict[str, float]], ({"a": {"b": 1}},), ({"a": 1}, {"a": {"b": "1"}})),
        (Part, (Part("a"), Part("a", (1.5,))), (Part(1), Part("a", ("x",)), {}, None)),
        (Any, (1, None, []), ()),
    ],
)
def test_what_fits(hint, good, bad):
    assert [value for value in good if not typed.fits(value, hint)] == []
    assert [value for value in bad if typed.fits(value, hint)] == []


def test_the_first_misfit_is_named():
    assert typed.checked(Part("a")) == Part("a")
    assert refusal(typed.checked, Part("a", 7), error=typed.Misfit) == OtherType("sizes")
    typed.require({"number": 1, "unknown": object()}, Inner)
    typed.require({"number": 1.5}, Inner)  # as a mean over several processes
    assert refusal(typed.require, {"number": "1"}, Inner, error=typed.Misfit) == OtherType("number")
