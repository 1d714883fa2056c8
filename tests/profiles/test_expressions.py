from __future__ import annotations

import pytest
from envkit.profiles.expressions import ExpressionError, expand
from envkit.profiles.messages import (
    DividesByZero,
    Fraction,
    NotAllowed,
    NotAnExpression,
    TooFewArguments,
    UnclosedReference,
    UnknownFact,
)

from tests.refusals import refusal

FACTS = {"physical_cores": 8, "usable_cpus": 16, "numa_nodes": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${physical_cores}", "8"),
        ("${ usable_cpus - 1 }", "15"),
        ("${physical_cores // numa_nodes * 3 % 7 + 1}", "6"),
        ("${max(1, physical_cores - 10)}", "1"),
        ("${min(usable_cpus, 4, 12)}", "4"),
        ("${(1 + 2) * 3}", "9"),
        ("0-${usable_cpus - 1},cores=${physical_cores}", "0-15,cores=8"),
        ("no expression, $HOME {x}", "no expression, $HOME {x}"),
        ("", ""),
    ],
)
def test_expand(text, value):
    assert expand(text, FACTS) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${cores}", UnknownFact("cores", ("numa_nodes", "physical_cores", "usable_cpus"))),
        ("${usable_cpus / 2}", Fraction()),
        ("${usable_cpus // 0}", DividesByZero("usable_cpus // 0")),
        ("${usable_cpus % (numa_nodes - 2)}", DividesByZero("usable_cpus % (numa_nodes - 2)")),
        ("${usable_cpus +}", NotAnExpression("usable_cpus +")),
        ("${}", NotAnExpression("")),
        ("${2 ** 3}", NotAllowed("2 ** 3")),
        ("${-1}", NotAllowed("-1")),
        ("${1.5}", NotAllowed("1.5")),
        ("${True}", NotAllowed("True")),
        ("${'a'}", NotAllowed("'a'")),
        ("${min()}", TooFewArguments("min()", "min")),
        ("${__import__('os').system('true')}", NotAllowed("__import__('os').system('true')")),
        ("${usable_cpus.bit_length()}", NotAllowed("usable_cpus.bit_length()")),
        ("${min(4)}", TooFewArguments("min(4)", "min")),
        ("${physical_cores", UnclosedReference("${physical_cores")),
    ],
)
def test_refused_with_what_could_stand_there(text, problem):
    assert refusal(expand, text, FACTS, error=ExpressionError) == problem
