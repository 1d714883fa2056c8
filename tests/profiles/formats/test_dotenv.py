from __future__ import annotations

import re
import string

import pytest
from envkit.common.errors import InputError
from envkit.profiles.formats.dotenv import dotenv
from envkit.profiles.formats.messages import DOLLAR, LEADING_QUOTE, LINE_BREAK, NUMBER_SIGN, OUTER_BLANK, Has
from envkit.profiles.messages import NotExpressible
from hypothesis import given

from tests.profiles.formats.resolving import VALUES, resolved
from tests.refusals import refusal

PLAIN_CHARACTERS = set(string.ascii_letters + string.digits + string.punctuation + " ") - set("$#'\"`")


def raw(text):
    """What ``docker run --env-file`` reads: all after the first =, quotes and blanks too."""
    lines = [line.lstrip() for line in text.split("\n")]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def quoting(text):
    """What Compose and python-dotenv read of a file in which nothing is quoted and nothing is to be replaced."""
    read = {}
    for line in re.split(r"[\r\n]", text):
        if not line or line.startswith("#"):
            continue
        name, value = line.split("=", 1)
        assert not value.lstrip().startswith(("'", '"')), line
        assert "$" not in value, line
        read[name] = re.sub(r"\s#.*", "", value).strip()
    return read


@given(VALUES)
def test_all_readers_read_the_same_or_it_is_refused(variables):
    for name, value in variables.items():
        try:
            text = dotenv(resolved({name: value}))
        except InputError:
            assert not (set(value) <= PLAIN_CHARACTERS and value == value.strip())
        else:
            assert raw(text) == quoting(text) == {name: value}


PLAIN = ["", "a b", "a#b", "it's", 'say "x"', "C:\\new\\", "a=b", "x `id`!", "grün", "thp:always,x:-1"]


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_are_not_refused(value):
    assert dotenv(resolved({"X": value})).splitlines()[1:] == [f"X={value}"]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("a\nb", Has(LINE_BREAK)), ("a\rb", Has(LINE_BREAK)), (" a", Has(OUTER_BLANK)),
        ("a\t", Has(OUTER_BLANK)), ("'a'", Has(LEADING_QUOTE)), ('"', Has(LEADING_QUOTE)),
        ("$HOME", Has(DOLLAR)), ("a #b", Has(NUMBER_SIGN)), ("#b", Has(NUMBER_SIGN)),
    ],
)  # fmt: skip
def test_what_readers_do_not_agree_on_is_refused(value, what):
    found = refusal(dotenv, resolved({"GOOD": "1", "X": value}))
    assert isinstance(found, NotExpressible)
    assert (found.profile, found.format, found.name) == ("mine", "dotenv", "X")
    assert found.problem == what
