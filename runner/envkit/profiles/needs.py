"""A profile's requirements for a machine: the least of a number, or which text a fact must be, or must not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from envkit.messages import Message
from envkit.profiles.catalogue_messages import COUNTED
from envkit.profiles.expressions import FACTS, expand
from envkit.profiles.messages import NeedsNumber, NeedsOther, NeedsText, NumberNeeded, OtherNeeded, TextNeeded

# Facts that are texts: a profile can need one, and no expression can refer to it.
CPU_VENDOR = "cpu_vendor"
TEXT_FACTS = (CPU_VENDOR,)

# As profiles have them: by fact the least number or an expression for it; of a text those that will do, one or a list,
# or under ``not`` those that will not, with the reason under ``because``.
Needs = Mapping[str, Any]


def known(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that profiles may need; GPUs are counted only where they were looked for.

    A text that the machine does not tell is None.
    """
    numbers = {name: int(facts.get(name, 0) if name == "gpus" else facts[name]) for name in FACTS}
    return {**numbers, **{name: facts.get(name) for name in TEXT_FACTS}}


def of_kind(needs: Needs) -> dict[str, Any]:
    """Return those needs that are of a kind of machine, not of how many CPUs or GPUs a process has of it."""
    return {fact: wanted for fact, wanted in needs.items() if fact in TEXT_FACTS}


def unmet(needs: Needs, facts: Mapping[str, Any]) -> tuple[str, Message] | None:
    """Return the first fact that is not as needed, with the reason; None if all are as needed.

    ``facts`` are those that ``known`` returns. Raises ExpressionError for a number that has no value here.
    """
    for fact, wanted in needs.items():
        in_words = fact in TEXT_FACTS
        problem: Message | None = _of_text(fact, wanted, facts[fact]) if in_words else _of_number(fact, wanted, facts)
        if problem is not None:
            return fact, problem
    return None


def described(fact: str, wanted: Any) -> Message:
    """Return a need as a line of ``envkit show``, before host facts are filled in."""
    if fact not in TEXT_FACTS:
        return NumberNeeded(fact, str(wanted))
    allowed, excluded, because = _texts(wanted)
    if allowed is not None:
        return TextNeeded(fact, tuple(allowed))
    return OtherNeeded(fact, tuple(excluded), because or None)


def together(all_needs: Iterable[Needs]) -> dict[str, Any] | None:
    """Return what several settings need at once; None where no machine has that. Numbers must be whole numbers."""
    found: dict[str, Any] = {}
    for needs in all_needs:
        for fact, wanted in needs.items():
            both = wanted if found.get(fact, wanted) == wanted else _both(fact, found[fact], wanted)
            if both is None:
                return None
            found[fact] = both
    return found


def _of_number(fact: str, wanted: Any, facts: Mapping[str, Any]) -> NeedsNumber | None:
    """Return what is wrong with a number, or None."""
    least = int(expand(str(wanted), {name: facts[name] for name in FACTS}))
    if facts[fact] >= least:
        return None
    return NeedsNumber(fact, least, facts[fact], COUNTED.get(fact))


def _of_text(fact: str, wanted: Any, here: str | None) -> NeedsText | NeedsOther | None:
    """Return what is wrong with a text, or None. One that is unknown is none of those that will do."""
    allowed, excluded, because = _texts(wanted)
    if here not in excluded and (allowed is None or here in allowed):
        return None
    if allowed is not None:
        return NeedsText(fact, tuple(allowed), here or "unknown")
    return NeedsOther(fact, tuple(excluded), here or "unknown", because or None)


def _texts(wanted: Any) -> tuple[list[str] | None, list[str], str]:
    """Return which texts will do (None: all others), which will not, and why not."""
    if isinstance(wanted, Mapping):
        return None, _listed(wanted["not"]), wanted.get("because", "")
    return _listed(wanted), [], ""


def _both(fact: str, one: Any, other: Any) -> Any:
    """Return what meets two needs of a fact, in the words of a profile; None where nothing does."""
    if fact not in TEXT_FACTS:
        return max(one, other)
    (allowed, excluded, because), (others, unwanted, reason) = _texts(one), _texts(other)
    unwanted = list(dict.fromkeys([*excluded, *unwanted]))
    lists = [texts for texts in (allowed, others) if texts is not None]
    if lists:
        return [text for text in lists[0] if text in lists[-1] and text not in unwanted] or None
    reasons = "; ".join(text for text in dict.fromkeys((because, reason)) if text)
    return {"not": unwanted, **({"because": reasons} if reasons else {})}


def _listed(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given
