"""Several ways to start the same training, measured side by side: fresh processes, in blocks of random order.

For comparisons that ``envkit bench`` does not make: with other launchers, and each with a reference of its own. What it
takes from the kit is the worker with its evidence, the rule by which a sample was disturbed, and the interval.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from envkit import engines
from envkit.analysis import messages, noise
from envkit.bench import dataset, losses, requests
from envkit.bench.job import PADDING
from envkit.bench.study import MARGIN, MOST_PADDING
from envkit.checks.effect import check
from envkit.checks.interference import disturbances
from envkit.cli.arguments import count
from envkit.common import codec
from envkit.common.errors import FAILED, MEASURED
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import EngineOptions, Launch
from envkit.engines.inspect_image import inspect
from envkit.engines.local import LocalEngine
from envkit.engines.measurement import Usage
from envkit.profiles import catalogue
from envkit.profiles.environment import Environment, clean
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import of_rank, resolve
from envkit.rendering import text
from envkit.stats.interval import ERROR_RATE, Speedup, log_ratios, speedup
from envkit.stats.sequential import fewest_blocks
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.modes import USUAL, Options
from envkit.worker.request import Instances, Train
from envkit.worker.workloads import DEFAULT, GENERATED, LOSS_TOLERANCE, get

from benchmarks import page, script
from benchmarks.errors import ScriptError
from benchmarks.results import Line, Results

STEPS, WARMUP_STEPS = 100, 20
TIMEOUT_S = 300.0
COMPILING_TIMEOUT_S = 900.0
MOST_DISTURBED = "**Most blocks were disturbed: take these figures with care and measure again when it is quiet.**"
# What the evidence says of a worker in one line each; kept for every sample.
SEEN = {
    "runtime": ("openmp", "runtime"), "blocktime_ms": ("openmp", "blocktime_ms"), "allocator": ("malloc", "allocator"),
    "mkl": ("mkl", "dispatch"), "pinned_cpus": ("threads", "pinned_cpus"), "threads": ("openmp", "max_threads"),
    "wait_policy": ("openmp", "wait_policy"), "openmp_library": ("openmp", "library"), "fpmath": ("onednn", "fpmath"),
    "cpu_capability": ("torch", "cpu_capability"), "huge_page_tensors": ("torch", "huge_page_tensors"),
    "cpu_quota": ("limits", "cpu_quota"),
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One way to start the worker. ``problems`` says, of its evidence and stderr, what is not as it should be."""

    name: str
    variables: dict[str, str]
    prefix: tuple[str, ...]
    problems: Callable[[Mapping[str, Any], str], list[str]]
    without: tuple[str, ...] = ()  # variables of the caller's that it must not have
    engine: LocalEngine | None = None  # with an interpreter of its own, where it is not the one of all
    options: Options = USUAL  # how it trains
    instances: int = 1  # how many train at once, each on its share of the CPUs
    workload: str = DEFAULT  # what it trains


def add_options(parser: argparse.ArgumentParser, blocks: int, steps: int = STEPS) -> None:
    parser.add_argument("--blocks", metavar="N", type=count, default=blocks, help=f"(default: {blocks})")
    parser.add_argument("--steps", metavar="N", type=count, default=steps, help=f"timed steps (default: {steps})")
    parser.add_argument("--warmup-steps", metavar="N", type=count, default=WARMUP_STEPS,
                        help=f"untimed steps before them (default: {WARMUP_STEPS})")  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order (default: 1)")
    script.add_training_options(parser)


class Bench:
    """The engine, the data and the variables that all workers of one benchmark have in common."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.engine = LocalEngine(EngineOptions(python=arguments.python))
        self.inherited, _ = clean(os.environ, keep=())
        self.inherited.pop(PADDING, None)
        self.data = dataset.find(arguments.data, print).location

    def settings(self, entries: Sequence[Entry], inspection: Mapping[str, Any]) -> Line:
        """What must stay the same for samples to be compared, for the results' first line.

        The entries and the number of blocks too: to leave some out, or to add some, after a look at what came out is to
        stop when one likes it.
        """
        return {
            "machine": page.machine(), "blocks": self.arguments.blocks, "steps": self.arguments.steps,
            "warmup_steps": self.arguments.warmup_steps, "seed": self.arguments.seed,
            "data": "synthetic" if self.data == SYNTHETIC else "Fashion-MNIST",
            "packages": {"python": inspection["python"]["version"], **inspection["packages"]},
            "libraries": {name: library.get("sha256") for name, library in inspection["libraries"].items()},
            "entries": {
                entry.name: [
                    *entry.prefix, *map("=".join, entry.variables.items()), *entry.options.arguments(),
                    *([f"{entry.instances} at once"] if entry.instances > 1 else []),
                    *([entry.workload] if entry.workload != DEFAULT else []),
                ]
                for entry in entries
            },
        }  # fmt: skip

    def inspection(self, profiles: Iterable[Profile], tools: Iterable[str] = ()) -> dict[str, Any]:
        """Return what is here, as ``envkit.profiles.resolve`` takes it. ``tools``: more commands to look for."""
        return inspect(self.engine, self.inherited, [*prefix_commands(profiles), *tools])

    def launch(self, entry: Entry, steps: int, padding: int = 0) -> Launch:
        warmup_steps = self.arguments.warmup_steps if steps > 1 else 0
        data = requests.data(GENERATED if get(entry.workload).generated else self.data)
        training = Train(entry.workload, data, warmup_steps, steps, entry.options, profiles_ranks=steps > 1)
        return Launch(
            work=Instances(entry.instances, training) if entry.instances > 1 else training,
            variables={**entry.variables, PADDING: "x" * padding},
            inherited={name: value for name, value in self.inherited.items() if name not in entry.without},
            prefix=entry.prefix,
            timeout_s=COMPILING_TIMEOUT_S if entry.options.compile else TIMEOUT_S,
        )


def prefix_commands(profiles: Iterable[Profile]) -> list[str]:
    """Return the commands with which these profiles start others."""
    return [loaded.prefix[0] for loaded in profiles if loaded.prefix]


def of_profile(
    loaded: Profile, inspection: Mapping[str, Any], instances: int = 1, variables: Mapping[str, str] | None = None
) -> Entry:
    """A profile of the kit's, or so many ``instances`` at once under it, with its own checks.

    ``variables`` are set besides. Raises InputError where it can't be had here.
    """
    inspection = of_rank(inspection, instances)
    environment = resolve(loaded, inspection)
    catalogue.require(environment, inspection, allow_unknown=True)
    environment = replace(environment, variables={**environment.variables, **(variables or {})})
    return Entry(
        loaded.name if instances == 1 else f"{instances} x {loaded.name}", environment.variables, environment.prefix,
        lambda *worker_output: _not_in_effect(environment, *worker_output), instances=instances,
    )  # fmt: skip


def _not_in_effect(environment: Environment, evidence: Mapping[str, Any], printed: str) -> list[str]:
    checks = check(environment, evidence, {}, printed)
    return [f"{item.key} is {item.seen}, not {item.expected}" for item in checks if not item.holds]


def run(bench: Bench, results: Results, entries: Sequence[Entry], references: Sequence[str]) -> None:
    """Measure the entries. Raise InputError if a reference, which others are compared with, could not be measured."""
    measure(bench, results, entries)
    for name in references:
        if not results.of("sample", entry=name):
            raise ScriptError(
                f"{name} could not be measured: {failure(results, name)}; fix that, and move {results.path} away"
            )


def write(arguments: argparse.Namespace, results: Results, page_parts: Sequence[str]) -> int:
    """Write the page, and return the exit status: whether any entry failed."""
    page.write(arguments.page, page_parts)
    return FAILED if results.of("failure") else MEASURED


def measure(bench: Bench, results: Results, entries: Sequence[Entry]) -> None:
    """Measure all blocks, or those that are left. An entry whose worker fails, or is not in effect, is left out."""
    arguments = bench.arguments
    with machine_lock():
        engines.remove_leftovers()
        for entry in entries:  # its files are then in the page cache as they are for all later samples
            if not results.of("sample", entry=entry.name) and not results.of("failure", entry=entry.name):
                document = _start(bench, results, entry, bench.launch(entry, 1), "warming up", measured=False)
                if document is not None:
                    results.append("start", entry=entry.name, first_step_s=document["step_s"][0])
        for block in range(arguments.blocks):
            order = list(entries)
            random.Random(f"{arguments.seed}:{block}").shuffle(order)
            for entry in order:
                if not results.of("sample", block=block, entry=entry.name) and not failure(results, entry.name):
                    _sample(bench, results, entry, block)


def require_blocks(blocks: int, comparisons: int) -> None:
    """Raise InputError where so few blocks can't give each of so many comparisons an interval."""
    if blocks < (fewest := fewest_blocks(comparisons)):
        raise ScriptError(
            f"--blocks {blocks}: is too few, as intervals of {comparisons} comparisons take {fewest} blocks; "
            f"give --blocks {fewest} or more"
        )


def failure(results: Results, name: str) -> str | None:
    """Why an entry is not measured any more."""
    return next((str(line["problem"]) for line in results.of("failure", entry=name)), None)


def _sample(bench: Bench, results: Results, entry: Entry, block: int) -> None:
    arguments = bench.arguments
    padding = random.Random(f"{arguments.seed}:{block}:{entry.name}").randrange(MOST_PADDING + 1)
    where = f"block {block + 1} of {arguments.blocks}"
    document = _start(bench, results, entry, bench.launch(entry, arguments.steps, padding), where)
    if document is None:
        return
    usage = document["usage"]
    seconds = sum(document["step_s"])  # of several at once, what counts of what they trained
    results.append(
        "sample",
        block=block,
        entry=entry.name,
        seconds=seconds,
        images_per_step=document.get("images_per_step"),
        losses=document["losses"],
        first_step_s=document["warmup_step_s"][0] if document["warmup_step_s"] else None,
        interference=[*disturbances(codec.parse(usage, Usage), document["seconds"])],
        system_share=round(usage["system_s"] / ((usage["system_s"] + usage["user_s"]) or 1), 4),
        faults_per_step=usage["minor_faults"] / document.get("usage_steps", len(document["step_s"])),
        seen={name: (document["evidence"].get(probe) or {}).get(key) for name, (probe, key) in SEEN.items()},
        variables=document["evidence"]["variables"].get("sensitive", {}),
    )
    print(f"{where}, {entry.name}: {1000 * seconds / len(document['step_s']):.2f} ms/step", flush=True)


def _start(
    bench: Bench, results: Results, entry: Entry, launch: Launch, where: str, measured: bool = True
) -> dict[str, Any] | None:
    """The worker's document, or None where it failed or was not in effect, which is then written down."""
    outcome = (entry.engine or bench.engine).run(launch)
    document: dict[str, Any] = {}
    problems = [f"the worker {text(outcome.failure)}"] if outcome.failure else []
    if not problems:
        try:
            document = json.loads(outcome.stdout)
            if measured:
                each = [entry.problems(process["evidence"], outcome.stderr_tail) for process in _processes(document)]
                problems = [*_other_modes(entry, document), *dict.fromkeys(itertools.chain(*each))]
        except (ValueError, KeyError, TypeError):
            problems = ["the worker printed no sample"]
    if not problems:
        return document
    last = "" if document else (outcome.stderr_tail.strip().splitlines() or ["nothing"])[-1]
    results.append("failure", entry=entry.name, problem="; ".join(problems) + (f": {last}" if last else ""))
    print(f"{where}, {entry.name}: left out: {results.lines[-1]['problem']}", flush=True)
    return None


def _processes(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those that a sample is of, each with its evidence."""
    return list(document.get("instances", [document]))


def _other_modes(entry: Entry, document: Mapping[str, Any]) -> list[str]:
    """What a worker saw of its training that is not as ``entry`` says; one that saw nothing trained as usual."""
    modes = {**USUAL.modes, **document.get("modes", {})}
    return [
        f"its {name.replace('_', ' ')} is {modes[name]}, not {wanted}"
        for name, wanted in entry.options.modes.items()
        if modes[name] != wanted
    ]


def compared(
    results: Results, reference: str, other: str, comparisons: int, without_interference: bool = False
) -> Speedup | None:
    """How much faster ``other`` is than ``reference``; None where there are too few blocks with both.

    All of so many ``comparisons`` hold together at 95% (Bonferroni). ``without_interference``: by the blocks only
    in which neither sample of the two was disturbed.
    """
    seconds = [
        {
            line["block"]: line["seconds"]
            for line in results.of("sample", entry=name)
            if not (without_interference and line["interference"])
        }
        for name in (reference, other)
    ]
    blocks = sorted(seconds[0].keys() & seconds[1].keys())
    ratios = log_ratios(*([of_entry[block] for block in blocks] for of_entry in seconds))
    return speedup(ratios, ERROR_RATE / max(1, comparisons), MARGIN) if blocks else None


def interference(results: Results, pairs: Sequence[tuple[str, str]], comparisons: int) -> list[str]:
    """The parts of a page that say what disturbed its samples from outside, and what is left of each ratio without.

    ``pairs`` are references and what is compared with them; samples of other entries do not count.
    """
    names = {name for pair in pairs for name in pair}
    samples = [line for line in results.of("sample") if line["entry"] in names]
    disturbed = [line for line in samples if line["interference"]]
    blocks = {line["block"] for line in samples}
    hit = {line["block"] for line in disturbed}
    page_parts = [
        "## Disturbed from outside",
        f"By the rule of `envkit bench`, {_how_many(disturbed, hit, len(blocks))}",
    ]
    if 2 * len(hit) > len(blocks):
        page_parts.append(MOST_DISTURBED)
    rows = []
    for reference, other in pairs:
        effect = compared(results, reference, other, comparisons)
        both = [line for name in (reference, other) for line in results.of("sample", entry=name)]
        if effect and any(line["interference"] for line in both):
            quiet = compared(results, reference, other, comparisons, without_interference=True)
            undisturbed = (
                [f"{quiet.ratio:.3f}", interval(quiet), str(quiet.blocks)] if quiet else ["", interval(None), ""]
            )
            rows.append([other, reference, f"{effect.ratio:.3f}", interval(effect), *undisturbed])
    if rows:
        header = ("", "against", "ratio", "interval", "ratio without disturbed", "interval without", "blocks left")
        page_parts.append(page.table(header, rows, numbers_from=2))
    return page_parts


def _how_many(disturbed: Sequence[Line], hit: set[int], blocks: int) -> str:
    if not disturbed:
        return f"no interference was detected in {blocks} blocks."
    often = messages.KINDS[noise.commonest([_reasons(disturbed, block) for block in hit])]
    plural = "s" if len(disturbed) > 1 else ""
    were = "were" if len(hit) > 1 else "was"
    return (
        f"{len(hit)} of {blocks} blocks {were} disturbed from outside (most often: {often}), "
        f"in {len(disturbed)} sample{plural}. A ratio without them has the blocks in which neither of its samples was."
    )


def _reasons(disturbed: Sequence[Line], block: int) -> list[str]:
    return [reason for line in disturbed if line["block"] == block for reason in line["interference"]]


def loss_difference(results: Results, reference: str, other: str) -> float | None:
    """The largest difference of a step's loss in all samples, as a share; None without samples."""
    first = results.of("sample", entry=reference)
    others = results.of("sample", entry=other) if first else []
    return max((losses.loss_difference(line["losses"], first[0]["losses"]) for line in others), default=None)


def losses_shown(results: Results, reference: str, other: str) -> str:
    """Return how far the losses of ``other`` are from those of ``reference``, as a cell of a table."""
    difference = loss_difference(results, reference, other)
    return "equal" if difference == 0 else "differ" if difference is None else f"within {difference:.0e}"


def losses_agree(difference: float | None) -> bool:
    return difference is not None and difference <= LOSS_TOLERANCE


def failures(results: Results, names: Sequence[str]) -> list[str]:
    """The parts of a page that say what failed, and after how many blocks: what came out of these is still there."""
    failed = [
        f"- {name}: {problem} (after {_blocks(len(results.of('sample', entry=name)))})"
        for name in names
        if (problem := failure(results, name))
    ]
    return ["## Failed", "\n".join(failed)] if failed else []


def _blocks(number: int) -> str:
    return f"{number} block{'' if number == 1 else 's'}"


def interval(speedup: Speedup | None) -> str:
    return f"{speedup.low:.3f} to {speedup.high:.3f}" if speedup else "too few blocks"
