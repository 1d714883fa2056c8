"""What did three variables give with the PyTorch of 2023, what have newer ones given, and what does tuning give on top?

Stacks are virtual environments that `make stack VARIANT=NAME` makes. Each does the same training with nothing set,
under intel-omp (the settings of the book whose CNN went from 148 s to 106 s) and tuned, all in one interleaved run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.engines.base import PROJECT, EngineOptions
from envkit.engines.inspect_image import inspect
from envkit.engines.local import LocalEngine
from envkit.profiles import profile
from envkit.profiles.profile import Profile

from benchmarks import interleaved, page, script
from benchmarks.errors import ScriptError
from benchmarks.grouped import Grouped, pairs
from benchmarks.interleaved import Bench, Entry, of_profile
from benchmarks.results import Results

BLOCKS, STEPS = 30, 40
STACKS = ("book", "cuda", "next")
BASELINE, BOOK, TUNED = "baseline", "intel-omp", "glibc-retain"


@dataclass(frozen=True)
class Stack:
    """A Python with its packages."""

    name: str
    engine: LocalEngine
    inspection: Mapping[str, Any]

    @property
    def torch(self) -> str:
        return str(self.inspection["packages"]["torch"])

    @property
    def kind(self) -> str:
        """What its PyTorch is built for: a CUDA build trains on CPUs too, by other code here and there."""
        cuda = self.inspection["contents"]["torch"].get("cuda")
        return f"CUDA {cuda}" if cuda not in (None, "None") else "CPUs alone"


def main() -> int:
    parser = script.parser("stacks", __doc__)
    interleaved.add_options(parser, BLOCKS, STEPS)
    parser.add_argument("--stack", metavar="NAME=PYTHON", type=_named, action="append",
                        help="a stack and its interpreter; the first is the reference of the others (default: "
                        f"those of {', '.join(STACKS)} that were made, else the project's own too)")  # fmt: skip
    parser.add_argument("--tuned", metavar="PROFILE", default=TUNED, help=f"the tuned profile (default: {TUNED})")
    arguments = parser.parse_args()
    named = arguments.stack or _made()
    if arguments.python is not None:
        raise ScriptError("--python means nothing here; name interpreters with --stack")
    if len({name for name, _ in named}) < len(named):
        raise ScriptError("--stack: two stacks have one name; give each its own")
    if len(named) < 2:
        raise ScriptError("there is one stack only: make another with make stack VARIANT=book, or name it with --stack")
    if arguments.tuned in (BASELINE, BOOK):
        raise ScriptError(f"--tuned {arguments.tuned}: is measured anyway; name another profile, or leave it out")
    profiles = [profile.load(name) for name in (BASELINE, BOOK, arguments.tuned)]
    compared = pairs([name for name, _ in named], [loaded_profile.name for loaded_profile in profiles], _on)
    interleaved.require_blocks(arguments.blocks, len(compared))
    bench = Bench(arguments)
    stacks = [_stack(bench, name, python, interleaved.prefix_commands(profiles)) for name, python in named]
    entries = [_entry(stack, loaded_profile) for stack in stacks for loaded_profile in profiles]
    settings = bench.settings(entries, stacks[0].inspection)
    results = Results(arguments.results, {**settings, "stacks": [[stack.name, *_about(stack)[1:]] for stack in stacks]})
    interleaved.run(bench, results, entries, [_on(BASELINE, stack.name) for stack in stacks])
    names = [loaded_profile.name for loaded_profile in profiles]
    return interleaved.write(arguments, results, _page(results, stacks, names))


def _named(text: str) -> tuple[str, str]:
    name, equals, python = text.partition("=")
    if not (name and equals and python):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PYTHON, for example book=.venv-book/bin/python")
    return name, python


def _made() -> list[tuple[str, str]]:
    """The stacks that are there, the book's first; with the project's own Python where there are not two."""
    made = [(name, PROJECT / f".venv-{name}") for name in STACKS]
    stacks = [(name, folder / "bin/python") for name, folder in made if (folder / ".locked").exists()]
    if len(stacks) < 2:
        stacks.append(("project", Path(sys.executable)))
    return [(name, str(python)) for name, python in stacks]


def _stack(bench: Bench, name: str, python: str, commands: Sequence[str]) -> Stack:
    try:
        engine = LocalEngine(EngineOptions(python=python))
        return Stack(name, engine, inspect(engine, bench.inherited, commands, contents=True))
    except InputError as error:
        raise InputError(About(f"--stack {name}", error.message)) from None


def _on(name: str, stack: str) -> str:
    return f"{name} on {stack}"


def _entry(stack: Stack, loaded: Profile) -> Entry:
    return replace(of_profile(loaded, stack.inspection), name=_on(loaded.name, stack.name), engine=stack.engine)


def _page(results: Results, stacks: Sequence[Stack], settings: Sequence[str]) -> list[str]:
    grouped = Grouped(results, [stack.name for stack in stacks], settings, _on)
    across = [[*row, grouped.losses(grouped.across(*row[:2]))] for row in grouped.rows_across()]
    return [
        *grouped.opening("Three variables, three years of PyTorch", (__doc__ or "").strip()),
        "## In short",
        _in_short(grouped, stacks),
        "## The stacks",
        page.table(("stack", "PyTorch", "built for", "Intel's OpenMP", "Python"), [_about(stack) for stack in stacks]),
        _kinds(stacks),
        "## What settings give on each stack",
        page.table(("stack", "settings", "samples", "ms/step", f"against {BASELINE} there", "interval"),
                   grouped.rows_within(), 2),
        f"## What a stack gives, against {stacks[0].name} with the same settings",
        page.table(("settings", "stack", "ratio", "interval", "largest difference of a loss"), across, 2),
        *grouped.closing(),
    ]  # fmt: skip


def _in_short(grouped: Grouped, stacks: Sequence[Stack]) -> str:
    first, last = stacks[0], stacks[-1]
    baseline, book, tuned = grouped.settings
    return (
        f"With PyTorch {first.torch} the book's three variables made it "
        f"{grouped.times(grouped.within(book, first.name))}; with nothing set, PyTorch {last.torch} is "
        f"{grouped.times(grouped.across(baseline, last.name))}; and there {tuned} makes it "
        f"{grouped.times(grouped.within(tuned, last.name))}."
    )


def _about(stack: Stack) -> list[str]:
    packages = stack.inspection["packages"]
    openmp = str(packages.get("intel-openmp") or "-")
    return [stack.name, stack.torch, stack.kind, openmp, str(stack.inspection["python"]["version"])]


def _kinds(stacks: Sequence[Stack]) -> str:
    if len({stack.kind == "CPUs alone" for stack in stacks}) == 1:
        return ""
    return (
        "**One PyTorch is built with CUDA and another is not: a part of what differs between these stacks may come "
        "from the kind of build.** `make stack VARIANT=cuda` makes one with CUDA."
    )


if __name__ == "__main__":
    sys.exit(script.run("stacks", main))
