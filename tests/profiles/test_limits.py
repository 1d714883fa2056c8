"""However long, deep or large a profile's values are, they are taken or refused at once, without a traceback."""

from __future__ import annotations

import dataclasses
import signal

import pytest
from envkit.common.messages import NumberTooLong
from envkit.profiles import catalogue, profile, values
from envkit.profiles.expressions import DEEPEST, LARGEST, LONGEST, LONGEST_EXPRESSION, ExpressionError, expand
from envkit.profiles.limit_messages import (
    ExpressionTooDeep,
    ExpressionTooLong,
    NumberTooLarge,
    TextTooLong,
    TooManyVariables,
)
from envkit.profiles.values import SettingsError

from tests.refusals import refusal

# Of processor time, on a slow machine too: what is attacked took 6 to 20 s and more.
SECONDS = 2.0
LENGTH = 60_000
PUMPS = (" ", ",", "1", "0,", "-", "[", "]", ":", "x", "a", "=", "{0},", ":ax1sx1s", ":1:1", "1:1,", "(", "1 ", "a:1,")
HEADS = ("", "1", "1s", "a:", "{0", "cores(", "granularity=", "BRANCH=", "filter=")


@pytest.fixture(autouse=True)
def in_time():
    """Fail where it takes too much of the processor's time, also inside a regular expression."""

    def too_long(number, frame):
        raise AssertionError(f"it takes more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, too_long)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def start_clock():
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("${" + "9" * 4000 + "*" + "9" * 4000 + "}", TextTooLong),
        ("${1" + "+1" * 20_000 + "}", TextTooLong),
        ("${" + "-" * 50_000 + "1}", TextTooLong),
        ("${" * 50_000, TextTooLong),
        ("1" * (LONGEST + 1), TextTooLong),
        ("${1" + "+1" * LONGEST_EXPRESSION + "}", ExpressionTooLong),
        ("${1" + "+1" * (DEEPEST + 1) + "}", ExpressionTooDeep),
        ("${" + "9" * 100 + "}", NumberTooLarge),
        ("${" + "*".join(["99999"] * 9) + "}", NumberTooLarge),
    ],
)
def test_a_value_that_takes_long_is_refused_with_its_line(write_profile, value, wrong):
    path = write_profile("mine", f'env:\n  A: "{value}"\n')
    start_clock()
    found = refusal(profile.load, str(path))
    assert found.file == str(path)
    assert isinstance(found.problem, wrong)


def test_a_profile_sets_no_thousands_of_variables(write_profile):
    lines = [f"  V{number}: x\n" for number in range(profile.MOST_VARIABLES + 1)]
    found = refusal(profile.load, str(write_profile("mine", "env:\n" + "".join(lines))))
    assert found.problem == TooManyVariables(501, 500)
    assert len(profile.load(str(write_profile("mine", "env:\n" + "".join(lines[1:])))).env) == 500


@pytest.mark.parametrize("text", ["-" * 198 + "1", "(" * 198, "min(" * 49, "1,\0"])
def test_a_deep_expression_is_refused(text):
    with pytest.raises(ExpressionError):
        expand(f"${{{text}}}", {})


def test_what_people_write_is_far_below_the_limits():
    facts = {"usable_cpus": LARGEST}
    assert expand("${usable_cpus}", facts) == str(LARGEST)
    assert expand("${0" + "+1" * DEEPEST + "}", {}) == str(DEEPEST)
    assert expand("a" * LONGEST, {}) == "a" * LONGEST


@pytest.mark.parametrize("number", ["0x" + "f" * LENGTH, "1" + ":1" * 50_000, "0b" + "1" * LENGTH, "0" * LENGTH])
@pytest.mark.parametrize("key", ["env: {A: NUMBER}", "ranks: NUMBER", "expect: {openmp.max_threads: NUMBER}"])
def test_a_number_of_many_digits_is_refused(write_profile, key, number):
    path = write_profile("mine", f"{key.replace('NUMBER', number)}\n")
    start_clock()
    assert isinstance(refusal(profile.load, str(path)).problem, NumberTooLong)


def kinds():
    """One of those kinds that are judged alike, with the name of its variable."""
    found = {}
    for name, variable in catalogue.load().items():
        for key, kind in (("", variable.kind), *variable.kind.keys.items()):
            alike = dataclasses.replace(kind, min=None, max=None, above=None, below=None, default="", since="", does="")
            found.setdefault(repr(alike), (f"{name} {key}".strip(), kind))
    return found.values()


def test_a_long_value_of_any_kind_is_judged_at_once():
    """Also one of a process, which is not bounded as those of a profile are."""
    # a few repetitions too: some patterns took exponential time
    attacks = [head + pump * 30 for head in HEADS for pump in PUMPS]
    attacks += [head + pump * (LENGTH // 2 // len(pump)) for head in ("", "1") for pump in PUMPS]
    for name, kind in kinds():
        start_clock()
        for attack in attacks:
            for value in (attack, f"{attack}!"):
                try:
                    if values.refusal(kind, value) is None:
                        values.number_or_boolean(kind, value)
                except SettingsError:
                    pass
                except AssertionError as error:
                    pytest.fail(f"{name}: {error}: {value[:60]}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_STACKSIZE", "1" + " " * LENGTH + "x"),
        ("KMP_AFFINITY", "," * 100_000),
        ("MALLOC_CONF", "," * 100_000),
        ("GLIBC_TUNABLES", ":" * 100_000),
        ("TCMALLOC_RELEASE_RATE", "1" * LENGTH + "x"),
        ("KMP_HW_SUBSET", "1s" + ":ax1sx1s" * 25 + "!"),
        ("OMP_NUM_THREADS", "1" * LENGTH),
        ("CUBLAS_WORKSPACE_CONFIG", ":" + "1" * LENGTH + ":1"),
        ("GOMP_CPU_AFFINITY", "1-" + "1" * LENGTH),
    ],
)
def test_the_slow_ones_are_judged_at_once(name, value):
    kind = catalogue.load()[name].kind
    start_clock()
    try:
        found = values.refusal(kind, value)
    except SettingsError as error:
        found = error.message
    assert found is not None or name == "GLIBC_TUNABLES"  # glibc steps over empty ones


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("a,b", ["a", "b"]),
        ("proclist=[0,1],explicit", ["proclist=[0,1]", "explicit"]),
        ("a,[b,c", ["a", "[b", "c"]),
        ("a],b", ["a]", "b"]),
        ("a,b],c", ["a,b]", "c"]),
        ("[a,[b,c],d", ["[a", "[b,c]", "d"]),
        ("", [""]),
        (",", ["", ""]),
    ],
)
def test_lists_are_split_outside_of_brackets(value, parts):
    assert values._outside_brackets(value, ",") == parts
