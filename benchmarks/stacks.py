"""What did three variables give with the PyTorch of 2023, what have newer ones given, and what does tuning give on top?

Stacks are virtual environments that `make stack VARIANT=NAME` makes. Each does the same training with nothing set,
under intel-omp (the settings of the book whose CNN went from 148 s to 106 s) and tuned, all in one interleaved run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import interleaved, page, script
from benchmarks.interleaved import Bench, Entry, compared, interval, of_profile
from benchmarks.results import Results
from runner.common.errors import FAILED, MEASURED, InputError
from runner.engines.base import PROJECT, EngineOptions
from runner.engines.inspect_image import inspect
from runner.engines.local import LocalEngine
from runner.profiles import profile
from runner.profiles.profile import Profile
from runner.worker.fashion_mnist import SYNTHETIC

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
        raise InputError("--python means nothing here; name interpreters with --stack")
    if len({name for name, _ in named}) < len(named):
        raise InputError("--stack: two stacks have one name; give each its own")
    if len(named) < 2:
        raise InputError("there is one stack only: make another with make stack VARIANT=book, or name it with --stack")
    if arguments.tuned in (BASELINE, BOOK):
        raise InputError(f"--tuned {arguments.tuned}: is measured anyway; name another profile, or leave it out")
    bench = Bench(arguments)
    profiles = [profile.load(name) for name in (BASELINE, BOOK, arguments.tuned)]
    stacks = [_stack(bench, name, python, [one.prefix[0] for one in profiles if one.prefix]) for name, python in named]
    entries = [_entry(stack, one) for stack in stacks for one in profiles]
    settings = bench.settings(entries, stacks[0].inspection)
    results = Results(arguments.results, {**settings, "stacks": [[stack.name, *_about(stack)[1:]] for stack in stacks]})
    interleaved.measure(bench, results, entries)
    for stack in stacks:
        interleaved.require_samples(results, _on(BASELINE, stack))
    page.write(arguments.page, _page(results, stacks, [one.name for one in profiles]))
    return FAILED if results.of("failure") else MEASURED


def _named(text: str) -> tuple[str, str]:
    name, equals, python = text.partition("=")
    if not (name and equals and python):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PYTHON, for example book=.venv-book/bin/python")
    return name, python


def _made() -> list[tuple[str, str]]:
    """The stacks that are there, the book's first; with the project's own Python where there are not two."""
    made = [(name, PROJECT / f".venv-{name}") for name in STACKS]
    found = [(name, folder / "bin/python") for name, folder in made if (folder / ".locked").exists()]
    if len(found) < 2:
        found.append(("project", Path(sys.executable)))
    return [(name, str(python)) for name, python in found]


def _stack(bench: Bench, name: str, python: str, commands: Sequence[str]) -> Stack:
    try:
        engine = LocalEngine(EngineOptions(python=python))
        return Stack(name, engine, inspect(engine, bench.inherited, commands, contents=True))
    except InputError as error:
        raise InputError(f"--stack {name}: {error}") from None


def _on(name: str, stack: Stack) -> str:
    return f"{name} on {stack.name}"


def _entry(stack: Stack, loaded: Profile) -> Entry:
    return replace(of_profile(loaded, stack.inspection), name=_on(loaded.name, stack), engine=stack.engine)


def _page(results: Results, stacks: Sequence[Stack], settings: Sequence[str]) -> list[str]:
    first, *others = stacks
    within = [(_on(BASELINE, stack), _on(name, stack)) for stack in stacks for name in settings[1:]]
    across = [(_on(name, first), _on(name, stack)) for stack in others for name in settings]
    pairs = [*within, *across]
    known = results.lines[0]
    return [
        page.heading("Three variables, three years of PyTorch", (__doc__ or "").strip(), results.of("sample"),
                     known["machine"]),
        "**SYNTHETIC DATA: this is not Fashion-MNIST.**" if known["data"] == SYNTHETIC else "",
        f"Each process takes {known['warmup_steps']} steps to warm up and {known['steps']} timed ones. A ratio is the "
        f"reference's time over the other's: above 1 the other is faster. All {len(pairs)} intervals hold together at "
        "95%.",
        "## In short",
        _in_short(results, stacks, settings, len(pairs)),
        "## The stacks",
        page.table(("stack", "PyTorch", "built for", "Intel's OpenMP", "Python"), [_about(stack) for stack in stacks]),
        _kinds(stacks),
        "## What settings give on each stack",
        page.table(("stack", "settings", "samples", "ms/step", f"against {BASELINE} there", "interval"),
                   [_row(results, stack, name, len(pairs)) for stack in stacks for name in settings], 2),
        f"## What a stack gives, against {first.name} with the same settings",
        page.table(("settings", "stack", "ratio", "interval", "largest difference of a loss"),
                   [_across(results, first, stack, name, len(pairs)) for stack in others for name in settings], 2),
        *interleaved.failures(results, list(dict.fromkeys(entry for pair in pairs for entry in pair))),
        *interleaved.interference(results, pairs, len(pairs)),
    ]  # fmt: skip


def _in_short(results: Results, stacks: Sequence[Stack], settings: Sequence[str], comparisons: int) -> str:
    first, last = stacks[0], stacks[-1]
    _, book, tuned = settings

    def said(reference: str, other: str) -> str:
        found = compared(results, reference, other, comparisons)
        return (
            f"{found.ratio:.2f} times as fast ({interval(found)}: {found.words})"
            if found
            else "as fast as is not known"
        )

    three = said(_on(BASELINE, first), _on(book, first))
    newer = said(_on(BASELINE, first), _on(BASELINE, last))
    top = said(_on(BASELINE, last), _on(tuned, last))
    return (
        f"With PyTorch {first.torch} the book's three variables made it {three}; with nothing set, PyTorch "
        f"{last.torch} is {newer}; and there {tuned} makes it {top}."
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


def _row(results: Results, stack: Stack, name: str, comparisons: int) -> list[str]:
    samples = results.of("sample", entry=_on(name, stack))
    found = compared(results, _on(BASELINE, stack), _on(name, stack), comparisons) if name != BASELINE else None
    steps = results.lines[0]["steps"]
    median = f"{1000 * statistics.median(line['seconds'] for line in samples) / steps:.2f}" if samples else "-"
    shown = [f"{found.ratio:.3f}", interval(found)] if found else ["", ""]
    return [stack.name, name, str(len(samples)), median, *shown]


def _across(results: Results, first: Stack, stack: Stack, name: str, comparisons: int) -> list[str]:
    pair = _on(name, first), _on(name, stack)
    found, difference = compared(results, *pair, comparisons), interleaved.loss_difference(results, *pair)
    losses = "-" if difference is None else f"{difference:.2g}"
    return [name, stack.name, f"{found.ratio:.3f}" if found else "-", interval(found), losses]


if __name__ == "__main__":
    sys.exit(script.run("stacks", main))
