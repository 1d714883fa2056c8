"""The rules that gauges with labels are under in OpenMetrics and in Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'


def gauges(lines: Iterable[str], kinds: Sequence[str], time: str = "") -> tuple[list[str], dict[str, float]]:
    """The names of the gauges, and their values by name and labels.

    What is said of each, by these ``kinds`` of lines, the first of which begins it, and its values stand together.
    ``time`` is how a value ends.
    """
    names, values = list[str](), dict[str, float]()
    for line in lines:
        if said := re.fullmatch(rf"# ({'|'.join(kinds)}) ([a-z_]+) (.+)", line):
            kind, name, text = said.groups()
            names += [name] if kind == kinds[0] else []
            assert name == names[-1]
            assert kind != "TYPE" or text == "gauge"
            assert kind != "UNIT" or name.endswith(f"_{text}")
            continue
        value = re.fullmatch(rf"([a-z_]+)((?:\{{{LABEL}(?:,{LABEL})*\}})?) (\S+){time}", line)
        assert value, line
        assert value[1] == names[-1]
        values[value[1] + value[2]] = float(value[3])
    assert len(names) == len(set(names))
    return names, values
