"""Whether a space has anything to try on a machine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from envkit.common.errors import InputError
from envkit.profiles.environment import Environment
from envkit.tuning.messages import NothingToTry, TooManyCandidates
from envkit.tuning.narrow import identity, require
from envkit.tuning.space import Choice, Space, choices, profile

# More candidates than this are not for measuring one by one.
MOST_EXHAUSTIVE = 500


def require_candidates(
    space: Space, baseline: Environment, inspection: Mapping[str, Any], one_by_one: bool, alone: bool
) -> None:
    """Raise InputError for a space that is too large to be measured ``one_by_one``, or where that is, or the space is
    searched ``alone``, one with nothing to try but the baseline where ``inspection`` is from.
    """
    first = list(itertools.islice(choices(space), MOST_EXHAUSTIVE + 1))
    if len(first) > MOST_EXHAUSTIVE:  # and something of so many can be tried
        if one_by_one:
            raise InputError(TooManyCandidates(str(space.path), MOST_EXHAUSTIVE))
        return
    if (one_by_one or alone) and not any(_can_be_tried(space, choice, baseline, inspection) for choice in first):
        raise InputError(NothingToTry(str(space.path)))


def _can_be_tried(space: Space, choice: Choice, baseline: Environment, inspection: Mapping[str, Any]) -> bool:
    made = profile(space, choice, "candidate")
    try:
        return made is not None and identity(require(made, inspection)) != identity(baseline)
    except InputError:
        return False
