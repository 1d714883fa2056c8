"""All commands, and the help of ``envkit`` that lists them in groups."""

from __future__ import annotations

from collections.abc import Mapping

from envkit.cli.overview_messages import EXIT_STATUSES, GROUPS, OPTIONS, PURPOSE, USAGE

COMMANDS: Mapping[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}


def text(width: int) -> str:
    """Return the help of ``envkit``, in lines of at most ``width`` columns unless a word is longer."""
    import textwrap

    first = max(len(word) for word in (*COMMANDS, *OPTIONS))
    # too narrow for two columns: what a command does stands below its name
    beside = width - first - 4 >= 20
    lines = [USAGE, "", *textwrap.wrap(PURPOSE, width), ""]
    for title, rows in (*GROUPS.items(), ("options", OPTIONS)):
        lines.append(f"{title}:")
        for name, what in rows.items():
            if beside:
                indent = " " * (first + 4)
                lines += textwrap.wrap(what, width, initial_indent=f"  {name:<{first}}  ", subsequent_indent=indent)
            else:
                lines += [f"  {name}", *textwrap.wrap(what, width, initial_indent="    ", subsequent_indent="    ")]
        lines.append("")
    return "\n".join([*lines, *textwrap.wrap(EXIT_STATUSES, width)]) + "\n"
