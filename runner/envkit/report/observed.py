"""Settings of each arm, as its workers observed them."""

from __future__ import annotations

from collections.abc import Iterable

from envkit.analysis.result import Measured, Result
from envkit.checks import effect
from envkit.checks.effect import NOT_SEEN, Check
from envkit.checks.effect_messages import Value
from envkit.checks.finding_messages import Unmet
from envkit.checks.process_messages import NotVerified
from envkit.common.messages import About
from envkit.messages import Message, from_json
from envkit.rendering import text
from envkit.report.messages import certainty as messages
from envkit.report.parts import Row, together


def rows(result: Result) -> list[Row]:
    """Return what was not measured, and of each arm how many of its settings were verified."""
    found = [Row("left out", About(names, why)) for names, why in together(result.not_measured).items()]
    for one in result.measured:
        found += _of_arm(one)
    for first in result.course.first_runs or ():
        if first.checks:
            found.append(Row("settings", messages.ArmVerified(first.arm, len(first.checks), None, messages.FIRST)))
    return found


def _of_arm(one: Measured) -> list[Row]:
    found, number = [], len(one.checks) - len(one.unverified)
    if not one.in_effect:
        found.append(Row("settings", messages.ArmNotInEffect(one.arm, missed(one.checks)), "bad"))
    elif number:
        found.append(Row("settings", messages.ArmVerified(one.arm, number, len(one.checks), messages.EVERY)))
    found += [Row("", About(one.arm, NotVerified(check.key, effect.shown(check.seen)))) for check in one.unverified]
    return [*found, *([Row("", About(one.arm, from_json(one.not_observed)))] if one.not_observed else [])]


def missed(checks: Iterable[Check]) -> tuple[Message, ...]:
    """Return those settings that were not observed as expected."""
    return tuple(_missed(check) for check in checks if not check.holds)


def _missed(check: Check) -> Message:
    if check.seen == NOT_SEEN:
        return messages.MissedUnseen(check.key, shown(check.expected))
    return Unmet(check.key, _value(check.expected), _value(check.seen))


def _value(value: object) -> Message:
    return Value("nothing") if value is None else effect.shown(value)


def shown(value: object) -> str:
    """Return a value of a setting, or ``nothing``."""
    return "nothing" if value is None else text(effect.shown(value))


def seen(value: object) -> str:
    """Return ``seen`` and the value, or that it was not seen."""
    return NOT_SEEN if value == NOT_SEEN else f"seen {shown(value)}"
