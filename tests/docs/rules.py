"""What is changed in a command of a page before a test executes it, and which commands no test executes, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.docs.shell_blocks import Command

MEASURING = ("bench", "matrix", "ablate", "plan", "compare-engines", "tune")
RECORDING = (*MEASURING, "loader-grid")
REPORTS = ("report", "diff")


@dataclass(frozen=True)
class Change:
    """An option that makes a command of a page shorter, or leaves the other machines that it needs alone.

    It replaces the options ``replaced``, and counts where a word of ``where`` is there and none of ``unless``.
    With ``of_kit`` it counts for workloads of envkit alone.
    """

    why: str
    where: tuple[str, ...]
    adds: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    of_kit: bool = False

    def apply(self, words: Sequence[str], own: Sequence[str]) -> list[str]:
        """Return the options ``words`` of a command with this change; ``own`` is a user's own command."""
        if self.of_kit and own:
            return [*words]
        if not {*self.where} & {*words} or {*self.unless} & {*words}:
            return [*words]
        kept = [
            word
            for before, word in zip(["", *words], words, strict=False)
            if word not in self.replaced and before not in self.replaced
        ]
        return [*kept, *self.adds]


CHANGES = (
    Change("a job needs a cluster, and prints its script without", ("submit", "fleet", "--nodes"), ("--dry-run",),
           unless=REPORTS),
    Change("as few blocks as every command takes", MEASURING[:-1],
           ("--blocks", "3"), ("--budget", "--blocks"), ("--full", "--dry-run")),
    Change("one block of each setting", ("loader-grid",), ("--blocks", "1")),
    Change("a short search in a small space", ("tune",), ("--budget", "100s", "--space", "coarse"),
           ("--budget", "--space"), ("--dry-run",)),
    Change("a data set that is fetched from the network", (*MEASURING, "breakdown", "check", "submit", "fleet"),
           ("--data", "synthetic"), ("--data",), (*REPORTS, "--workload"), of_kit=True),
    Change("a data set that is fetched from the network", ("all",), ("--data", "synthetic")),
    Change("the image that make builds", ("apptainer",), ("--sif", "FILE"), unless=("--sif", "--format")),
    Change("the image that make builds", ("enroot",), ("--sqsh", "FILE"), unless=("--sqsh", "--format")),
    Change("no race", ("advise",), ("--watch-only",), ("--budget", "--max-memory", "--watch-only"),
           ("--pid", "--resume")),
    Change("a short look at a training", ("doctor",), ("--watch", "1s"), unless=("--for-issue",)),
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of commands that no test of this folder executes, by a pattern that matches the whole command."""

    why: str
    pattern: str

    def has(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text, re.DOTALL) is not None


NOT_EXECUTED = (
    Kind("installs packages from an index", r".*\bpip install\b.*|(PYTHON=\S+ )?images/(setup|stack)\b.*"),
    Kind("makes an environment to install into", r"python3 -m venv .*"),
    Kind("builds an image; tests/images/test_build.py and tests/engines/test_image_build.py do", r"images/build .*"),
    Kind("reads an image that has to be built; tests/images/test_build.py reads a simulated one",
         r".*\bimages/(sbom|manifest)\b.*"),
    Kind("needs a Slurm cluster; tests/engines/test_env_formats.py submits such scripts", r"sbatch .*"),
    Kind("starts a container; tests/engines executes `exec` in each", r"envkit exec .*--engine .*"),
    Kind("needs two GPUs", r"envkit exec nccl-.*"),
    Kind("needs a GPU; tests/training/test_gpu.py executes it with simulated workers", r"benchmarks/gpu\.sh .*"),
    Kind("trains a model of the gallery; tests/benchmarks/test_gallery.py does", r"\.venv-gallery/bin/python .*"),
)  # fmt: skip
# Whose output has the figures of the run that a page names. tests/report/golden has the form of reports.
MEASURES = re.compile(r"envkit (advise|bench (?!gpu-)|breakdown|doctor|loader-grid|tune)\b.*")

# What a shown output of `envkit env` has of the machine that printed it.
OF_MACHINE = re.compile(
    r"# profile [^\n]*|profile \S+, resolved for [^\"]*|(?:/[\w.-]+)+/(?:\w+\.so\b[\w.]*|python)|cpu: \"\d+\""
)


def kind_of(command: str) -> Kind | None:
    """Return the kind of a command that is not executed; None for one that is."""
    return next((kind for kind in NOT_EXECUTED if kind.has(command)), None)


def shortened(words: Sequence[str], number: int) -> list[str]:
    """Return the words of an ``envkit`` command with all changes; those of a user's own command stay as they are.

    A command that records gets the folder ``results/NUMBER``: two that begin within a second would have one name.
    """
    end = words.index("--") if "--" in words else len(words)
    options, own = [*words[:end]], [*words[end:]]
    if options[0] == "doctor" and not own:
        return options
    for change in CHANGES:
        options = change.apply(options, own)
    if options[0] in RECORDING and not {"--dry-run", "--output"} & {*options}:
        options += ["--output", f"results/{number}"]
    return options + own


def shows_figures(command: Command) -> bool:
    return MEASURES.fullmatch(command.text) is not None


def is_shown(command: Command, said: str) -> bool:
    """Return whether a page shows what its command has printed; ``…`` stands for anything there."""
    assert command.output is not None
    shown = [re.escape(_compared(part)) for part in command.output.split("…")]
    return re.search(".*".join(shown), _compared(said), re.DOTALL) is not None


def _compared(text: str) -> str:
    """Return a text in one line, without what wrapping did to it, and without what differs between machines."""
    return " ".join(OF_MACHINE.sub("OF-MACHINE", text).split())
