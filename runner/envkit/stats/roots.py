"""Find where a function of one number is zero.

scipy has this method too. To import its package of them takes half a second, which every report would wait for.

Reference: R. P. Brent: Algorithms for Minimization without Derivatives (1973), chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable

# Of the root's own size: four times what a float resolves.
RELATIVE = 8.881784197001252e-16
MOST_STEPS = 100


def root(function: Callable[[float], float], low: float, high: float, tolerance: float = 2e-12) -> float:
    """Return where ``function`` is zero between ``low`` and ``high``, at most about ``tolerance`` off.

    The values at both ends must have different signs.
    """
    before, here = low, high
    value_before, value = function(before), function(here)
    if value_before == 0:
        return before
    if value == 0:
        return here
    assert (value_before < 0) != (value < 0), "both ends have the same sign"
    across, value_across = before, value_before  # the other end of the bracket
    step = last_step = here - before
    for _ in range(MOST_STEPS):
        if value_before != 0 and (value_before < 0) != (value < 0):
            across, value_across = before, value_before
            step = last_step = here - before
        if abs(value_across) < abs(value):
            before, here, across = here, across, here
            value_before, value, value_across = value, value_across, value
        least = (tolerance + RELATIVE * abs(here)) / 2
        half = (across - here) / 2
        if value == 0 or abs(half) < least:
            return here
        aimed = _aimed(before, here, across, value_before, value, value_across)
        if abs(last_step) > least and abs(value) < abs(value_before) and _is_short(aimed, last_step, half, least):
            last_step, step = step, aimed
        else:
            last_step = step = half
        before, value_before = here, value
        here += step if abs(step) > least else least if half > 0 else -least
        value = function(here)
    return here


def _aimed(before: float, here: float, across: float, value_before: float, value: float, value_across: float) -> float:
    """Return the step that interpolation takes: by a line through two points, or by a parabola through three."""
    if before == across:
        return -value * (here - before) / (value - value_before) if value != value_before else 0.0
    slope_before = (value_before - value) / (before - here)
    slope_across = (value_across - value) / (across - here)
    below = slope_across * slope_before * (value_across - value_before)
    return -value * (value_across * slope_across - value_before * slope_before) / below if below else 0.0


def _is_short(aimed: float, last_step: float, half: float, least: float) -> bool:
    """Return whether an interpolated step goes on inside the bracket, and does better than halves would."""
    return 2 * abs(aimed) < min(abs(last_step), 3 * abs(half) - least)
