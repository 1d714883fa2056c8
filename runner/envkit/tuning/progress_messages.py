"""Messages on how a search goes. Speedups are ratios: above 1 is faster. Times are in seconds."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

# Headers of the table on a terminal.
PROGRESS = ("trials", "candidate, fastest first")


class RoundEnded(Note):
    template = "round {round}, {stage}"

    round: int
    stage: str


class WorkerStarts(Note):
    template = "now: {what}"

    what: str


class Ahead(Note):
    """The candidate that is fastest so far. Without its speedup: the fastest of many was lucky too."""

    template = "ahead after {trials:count trial}: {candidate}"

    trials: int
    candidate: str


class Progress(Note):
    """``share_s`` is the search's share of the budget, unless its length is fixed."""

    template = (
        "{now}: {candidates:count candidate}[, {failed} failed][, {spent_s:duration} of {share_s:duration} for the "
        "search][; {ahead}]"
    )

    now: Message
    candidates: int
    spent_s: float
    failed: int | None = None
    share_s: float | None = None
    ahead: Message | None = None


class Busy(Caution):
    """``reasons`` are what disturbed the last trial that was disturbed."""

    template = "the machine is busy ({reasons:lines}), and an idle one needs less"

    reasons: tuple[Message, ...]


class LongConfirmation(Caution):
    template = (
        "the confirmation takes about {minutes:count minute}, which is more than the budget has left: "
        "a confidence interval needs {blocks:count block}[; {busy}]"
    )

    minutes: int
    blocks: int
    busy: Message | None = None


class NoRoom(Message):
    template = (
        "the budget has no room for a single candidate and its confirmation: give --budget {seconds:d}s or more"
        "[; {busy}]"
    )

    seconds: int
    busy: Message | None = None


class WayOn(Advice):
    """How to go on. ``arm`` is one that failed more than once, so that going on may not help."""

    template = (
        "[{arm} failed before, too: start a new tuning with what its workers lacked or without what it sets, or ]"
        "{go_on}"
    )

    go_on: Message
    arm: str | None = None
