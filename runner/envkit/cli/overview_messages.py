"""All commands in groups, each with a line about its purpose, and the help of ``envkit`` that lists them."""

from __future__ import annotations

from collections.abc import Mapping

USAGE = "usage: envkit COMMAND [OPTION]..."
PURPOSE = (
    "Make PyTorch training faster by its environment alone (OpenMP, allocators, BLAS, thread placement). "
    "Measure how much faster, and verify that every setting took effect."
)
GROUPS: Mapping[str, Mapping[str, str]] = {
    "start": {
        "advise": "watch a training, and measure which profile makes it fastest",
        "bench": "measure the speedup of profiles over the baseline",
        "exec": "run a command under a profile and verify the settings",
    },
    "search": {
        "matrix": "measure all profiles that apply here and rank them",
        "tune": "search for the best settings and write them as a profile",
        "ablate": "find out which settings of a profile make it faster",
    },
    "inspect": {
        "profiles": "list the profiles",
        "show": "show what a profile sets on this machine, and why",
        "explain": "explain an environment variable and who reads it",
        "env": "print a profile for a shell, container, job or notebook",
        "doctor": "find what slows training down or spoils a measurement",
        "breakdown": "show which operators or phases take a step's time",
    },
    "results": {
        "report": "print the report of an earlier run, or write a page",
        "history": "list the recorded runs and their verdicts",
        "baseline": "save a run and check later runs for regressions",
        "export": "write samples or results as csv, json or parquet",
    },
    "clusters": {
        "submit": "measure profiles on nodes of a Slurm cluster",
        "fleet": "measure every node of a cluster and find the slow ones",
    },
    "advanced": {
        "plan": "measure the noise here and say how long a verdict takes",
        "compare-engines": "measure what a container engine costs",
        "loader-grid": "measure DataLoader settings: workers and batch sizes",
        "completion": "print a completion script for bash, zsh or fish",
    },
}
COMMANDS: Mapping[str, str] = {name: purpose for group in GROUPS.values() for name, purpose in group.items()}
OPTIONS: Mapping[str, str] = {
    "help COMMAND": "show the options of a command (also: envkit COMMAND --help)",
    "-V, --version": "print the version",
    "-h, --help": "print this help",
}
EXIT_STATUSES = (
    "exit status: 0 done, 1 a worker failed, a profile was not in effect or a target not reached, 2 bad input, "
    "130 interrupted"
)


def help_text(width: int) -> str:
    """Return the help of ``envkit``, in lines of at most ``width`` columns unless a word is longer."""
    import textwrap

    first = max(len(word) for word in (*COMMANDS, *OPTIONS))
    # too narrow for two columns: what a command does stands below its name
    beside = width - first - 4 >= 20
    lines = [USAGE, "", *textwrap.wrap(PURPOSE, width), ""]
    for title, rows in (*GROUPS.items(), ("options", OPTIONS)):
        lines.append(f"{title}:")
        for name, purpose in rows.items():
            if beside:
                indent = " " * (first + 4)
                lines += textwrap.wrap(purpose, width, initial_indent=f"  {name:<{first}}  ", subsequent_indent=indent)
            else:
                lines += [f"  {name}", *textwrap.wrap(purpose, width, initial_indent="    ", subsequent_indent="    ")]
        lines.append("")
    return "\n".join([*lines, *textwrap.wrap(EXIT_STATUSES, width)]) + "\n"
