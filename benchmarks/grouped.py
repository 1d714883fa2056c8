"""Groups of entries that are all measured with the same settings: compared within each group, and across groups.

Groups are stacks of packages, or modes of the training; settings are profiles. The first of either is the reference of
the others, and all intervals of a page hold together at 95% (Bonferroni).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from envkit.stats.interval import Speedup
from envkit.worker.fashion_mnist import SYNTHETIC

from benchmarks import interleaved, page
from benchmarks.interleaved import interval
from benchmarks.results import Results

Pair = tuple[str, str]  # the names of two entries, the reference first


def pairs(groups: Sequence[str], settings: Sequence[str], entry: Callable[[str, str], str]) -> list[Pair]:
    """Each setting and the first one in its group, and in each group and in the first one."""
    within = [(entry(settings[0], group), entry(setting, group)) for group in groups for setting in settings[1:]]
    across = [(entry(setting, groups[0]), entry(setting, group)) for group in groups[1:] for setting in settings]
    return [*within, *across]


@dataclass(frozen=True)
class Grouped:
    """What was measured of ``groups``. ``entry`` is what a setting is called in a group; ``more`` is compared too."""

    results: Results
    groups: Sequence[str]
    settings: Sequence[str]
    entry: Callable[[str, str], str]
    more: Sequence[Pair] = ()

    def within(self, setting: str, group: str) -> Pair:
        """A setting and the first one, in the same group."""
        return self.entry(self.settings[0], group), self.entry(setting, group)

    def across(self, setting: str, group: str) -> Pair:
        """A setting in a group and in the first one."""
        return self.entry(setting, self.groups[0]), self.entry(setting, group)

    @property
    def pairs(self) -> list[Pair]:
        """All that are compared."""
        return [*pairs(self.groups, self.settings, self.entry), *self.more]

    def compared(self, pair: Pair) -> Speedup | None:
        return interleaved.compared(self.results, *pair, len(self.pairs))

    def times(self, pair: Pair) -> str:
        """``1.31 times as fast (1.218 to 1.434: faster)``."""
        effect = self.compared(pair)
        if effect is None:
            return "as fast as is not known"
        return f"{effect.ratio:.2f} times as fast ({interval(effect)}: {effect.words})"

    def losses(self, pair: Pair) -> str:
        """The largest difference of a loss, as a cell of a table."""
        difference = interleaved.loss_difference(self.results, *pair)
        return "-" if difference is None else f"{difference:.2g}"

    def opening(self, title: str, question: str) -> list[str]:
        """The parts that begin a page: the question, where it was measured, and how."""
        settings = self.results.lines[0]
        return [
            page.heading(title, question, self.results.of("sample"), settings["machine"]),
            "**SYNTHETIC DATA: this is not Fashion-MNIST.**" if settings["data"] == SYNTHETIC else "",
            f"Each process takes {settings['warmup_steps']} steps to warm up and {settings['steps']} timed ones. "
            "A ratio is the reference's time over the other's: above 1 the other is faster. "
            f"All {len(self.pairs)} intervals hold together at 95%.",
        ]

    def rows_within(self) -> list[list[str]]:
        """Group, setting, samples, ms/step, and the ratio against the first setting there, with its interval."""
        return [self._row(setting, group) for group in self.groups for setting in self.settings]

    def _row(self, setting: str, group: str) -> list[str]:
        samples = self.results.of("sample", entry=self.entry(setting, group))
        effect = self.compared(self.within(setting, group)) if setting != self.settings[0] else None
        steps = self.results.lines[0]["steps"]
        median = f"{1000 * statistics.median(line['seconds'] for line in samples) / steps:.2f}" if samples else "-"
        return [
            group,
            setting,
            str(len(samples)),
            median,
            *([f"{effect.ratio:.3f}", interval(effect)] if effect else ["", ""]),
        ]

    def rows_across(self) -> list[list[str]]:
        """Setting, group, and the ratio against the first group with the same setting, with its interval."""
        return [
            [setting, group, *self.cells(self.across(setting, group))]
            for group in self.groups[1:]
            for setting in self.settings
        ]

    def cells(self, pair: Pair) -> list[str]:
        """A ratio and its interval."""
        effect = self.compared(pair)
        return [f"{effect.ratio:.3f}" if effect else "-", interval(effect)]

    def closing(self) -> list[str]:
        """The parts that end a page: what failed, and what was disturbed."""
        pairs = self.pairs
        return [
            *interleaved.failures(self.results, list(dict.fromkeys(entry for pair in pairs for entry in pair))),
            *interleaved.interference(self.results, pairs, len(pairs)),
        ]
