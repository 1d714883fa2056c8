from __future__ import annotations

import pytest
from envkit.profiles.expressions import ExpressionError, expand

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
        ("${cores}", "unknown host fact 'cores'; known are numa_nodes, physical_cores, usable_cpus"),
        ("${usable_cpus / 2}", "'/' gives fractions; use '//' for whole-number division"),
        ("${usable_cpus // 0}", "'${usable_cpus // 0}' divides by zero on this machine"),
        ("${usable_cpus % (numa_nodes - 2)}", "divides by zero on this machine"),
        ("${usable_cpus +}", "'${usable_cpus +}' is not an expression; write for example ${usable_cpus}"),
        ("${}", "is not an expression"),
        ("${2 ** 3}", "'2 ** 3' is not allowed"),
        ("${-1}", "'-1' is not allowed"),
        ("${1.5}", "'1.5' is not allowed"),
        ("${True}", "'True' is not allowed"),
        ("${'a'}", "is not allowed"),
        ("${min()}", "is not allowed"),
        ("${__import__('os').system('true')}", "is not allowed"),
        ("${usable_cpus.bit_length()}", "is not allowed"),
        ("${min(4)}", "min"),
        ("${physical_cores", "physical_cores"),
    ],
)
def test_refused_with_what_could_stand_there(text, problem):
    with pytest.raises(ExpressionError) as caught:
        expand(text, FACTS)
    assert problem in str(caught.value)
