"""A profile's requirements for a machine: the least of a number, or which text a fact must be, or must not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from envkit.messages import Message
from envkit.profiles.catalogue_messages import COUNTED
from envkit.profiles.expressions import FACTS, expand
from envkit.profiles.messages import NeedsNumber, NeedsOther, NeedsText, NumberNeeded, OtherNeeded, TextNeeded

# Facts that are texts: a profile can need one, and no expression can refer to it.
CPU_VENDOR = "cpu_vendor"
TEXT_FACTS = (CPU_VENDOR,)

# Texts that a fact must not be, under ``not``, with the reason under ``because``.
Excluded = TypedDict("Excluded", {"not": "str | list[str]", "because": str}, total=False)
# A number, or an expression for it, is the least that will do. A text or a list names what will do, or what will not.
Need = int | str | list[str] | Excluded
Needs = Mapping[str, Need]
# Facts of a machine by name: numbers, and texts, which are None where the machine names none.
Known = dict[str, int | str | None]


def from_facts(facts: Mapping[str, object]) -> Known:
    """Return the facts that profiles may need; GPUs are counted only where they were looked for.

    Raise KeyError or TypeError for facts that are not a machine's.
    """
    counts: Known = {name: _count(name, facts.get(name, 0) if name == "gpus" else facts[name]) for name in FACTS}
    texts = {name: facts.get(name) for name in TEXT_FACTS}
    return {**counts, **{name: text if isinstance(text, str) else None for name, text in texts.items()}}


def numbers(facts: Mapping[str, object]) -> dict[str, int]:
    """Return those of the known facts to which expressions may refer."""
    return {name: _count(name, facts[name]) for name in FACTS}


def of_kind(needs: Needs) -> dict[str, Need]:
    """Return those needs that are of a kind of machine, not of how many CPUs or GPUs a process has of it."""
    return {fact: need for fact, need in needs.items() if fact in TEXT_FACTS}


def unmet(needs: Needs, facts: Mapping[str, object]) -> tuple[str, Message] | None:
    """Return the first fact that is not as needed, with the reason; None if all are as needed.

    ``facts`` are those that ``known`` returns. Raises ExpressionError for a number that has no value here.
    """
    for fact, need in needs.items():
        problem = _text_problem(fact, need, facts[fact]) if fact in TEXT_FACTS else _number_problem(fact, need, facts)
        if problem is not None:
            return fact, problem
    return None


def described(fact: str, need: Need) -> Message:
    """Return a need as a line of ``envkit show``, before host facts are filled in."""
    if fact not in TEXT_FACTS:
        return NumberNeeded(fact, str(need))
    allowed, excluded, because = _texts(need)
    if allowed is not None:
        return TextNeeded(fact, tuple(allowed))
    return OtherNeeded(fact, tuple(excluded), because or None)


def together(all_needs: Iterable[Needs]) -> dict[str, Need] | None:
    """Return what several settings need at once; None where no machine has that. Numbers must be whole numbers."""
    combined: dict[str, Need] = {}
    for needs in all_needs:
        for fact, need in needs.items():
            both = need if combined.get(fact, need) == need else _both(fact, combined[fact], need)
            if both is None:
                return None
            combined[fact] = both
    return combined


def _count(name: str, number: object) -> int:
    if not isinstance(number, int):
        raise TypeError(f"the fact {name} must be a whole number: {number!r}")
    return number


def _number_problem(fact: str, need: Need, facts: Mapping[str, object]) -> Message | None:
    """Return what is wrong with a number, or None."""
    counts = numbers(facts)
    least = int(expand(str(need), counts))
    if counts[fact] >= least:
        return None
    return NeedsNumber(fact, least, counts[fact], COUNTED.get(fact))


def _text_problem(fact: str, need: Need, here: object) -> Message | None:
    """Return what is wrong with a text, or None. One that is unknown is none of those that will do."""
    allowed, excluded, because = _texts(need)
    if here not in excluded and (allowed is None or here in allowed):
        return None
    name = str(here or "unknown")
    if allowed is not None:
        return NeedsText(fact, tuple(allowed), name)
    return NeedsOther(fact, tuple(excluded), name, because or None)


def _texts(need: Need) -> tuple[list[str] | None, list[str], str]:
    """Return which texts will do (None: all others), which will not, and why not."""
    if isinstance(need, dict):
        return None, _listed(need["not"]), need.get("because", "")
    assert not isinstance(need, int), "the schema of profiles allows a number for facts that are numbers alone"
    return _listed(need), [], ""


def _both(fact: str, first: Need, second: Need) -> Need | None:
    """Return what meets two needs of a fact, in the words of a profile; None where nothing does."""
    if fact not in TEXT_FACTS:
        return max(_count(fact, first), _count(fact, second))
    (allowed, excluded, because), (others, unwanted, reason) = _texts(first), _texts(second)
    unwanted = list(dict.fromkeys([*excluded, *unwanted]))
    lists = [texts for texts in (allowed, others) if texts is not None]
    if lists:
        return [text for text in lists[0] if text in lists[-1] and text not in unwanted] or None
    reasons = "; ".join(text for text in dict.fromkeys((because, reason)) if text)
    return {"not": unwanted, "because": reasons} if reasons else {"not": unwanted}


def _listed(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts
