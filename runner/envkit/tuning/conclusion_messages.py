"""Messages on what a search found, and why the profile that it wrote is what it is.

Speedups are ratios: above 1 is faster. Shares are of 1, times in seconds.
"""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING, ADVICE = Severity.NOTE, Severity.WARNING, Severity.ADVICE

# Labels of lines, and headers of tables.
SHIPPED, SEARCH, WHY = "Shipped", "Search", "Why"
FAILED, UNTRIED, LEFT_OUT = "Failed", "Untried", "Left out"
WRITTEN, USE, BENCH, NEXT = "Written", "Use", "Bench", "Next"
SYSTEM, RECORD, DETAILS = "System", "Record", "Details"
IMPORTANCE = ("parameter", "share (95% CI)", "best level", "speedup over the first level (95% CI)")
RANKING = ("speedup", "95% CI", "trials", "candidate")


# --- what it found ---


class BestShipped(Message):
    code = "tuning.best-shipped"
    severity = NOTE
    template = "the best shipped profile"


class BestShippedTried(Message):
    """The same if there was no time for all shipped profiles."""

    code = "tuning.best-shipped-tried"
    severity = NOTE
    template = "the best shipped profile tried"


class OverShipped(Message):
    """The tuned profile's speed over that of the best shipped one, and the verdict on that."""

    code = "tuning.over-shipped"
    severity = NOTE
    template = "tuned has {ratio:ratio}x the speed of {shipped}, {rank} (95% CI {low:ratio} to {high:ratio}): {verdict}"

    ratio: float
    low: float
    high: float
    shipped: str
    rank: Message
    verdict: str


class Searched(Message):
    code = "tuning.searched"
    severity = NOTE
    template = (
        "{candidates:count candidate} in {trials:count trial}, {worker_s:duration} of workers"
        "[; {failed} failed][; {untried} not tried][; {left_out} left out]"
    )

    candidates: int
    trials: int
    worker_s: float
    failed: int | None = None
    untried: int | None = None
    left_out: int | None = None


class LevelMatters(Message):
    code = "tuning.level-matters"
    severity = NOTE
    template = "{parameter}={level} {share:percent}"

    parameter: str
    level: str
    share: float


class Matter(Message):
    code = "tuning.matter"
    severity = NOTE
    template = "{levels} of the variance of the speedups"

    levels: tuple[Message, ...]


class FirstFailure(Message):
    """``problem`` is a clause with the worker as its subject."""

    code = "tuning.first-failure"
    severity = WARNING
    template = "{failed:count candidate}, the first {candidate}: its worker {problem}"

    failed: int
    candidate: str
    problem: Message


class Untried(Message):
    code = "tuning.untried"
    severity = WARNING
    template = "{number:count shipped profile} not tried for lack of time: {profiles:list}"

    number: int
    profiles: tuple[str, ...]


class LeftOutBecause(Message):
    code = "tuning.left-out"
    severity = NOTE
    template = "{what:list}: {why}"

    what: tuple[str, ...]
    why: Message


class ImportanceNote(Message):
    code = "tuning.importance-note"
    severity = NOTE
    template = (
        "share: of the variance of the candidates' speedups (Breiman 2001); speedups: predicted by the search, "
        "not confirmed"
    )


class AtMost(Message):
    """The share of a parameter that matters nothing."""

    code = "tuning.at-most"
    severity = NOTE
    template = "none (at most {high:.0%})"

    high: float


class RankingNote(Message):
    code = "tuning.ranking-note"
    severity = NOTE
    template = (
        "each interval is for one candidate alone; the first of {candidates} was also lucky, and is not confirmed"
    )

    candidates: int


# --- what it wrote ---


class NoneFaster(Message):
    """``refused`` are the arms that are faster with other losses than the baseline."""

    code = "tuning.none-faster"
    severity = NOTE
    template = "no profile is faster than the baseline[ with the same losses ({refused} faster, but losses differ)]"

    refused: tuple[str, ...] = ()


class HoldsUnderLoad(Message):
    code = "tuning.holds-under-load"
    severity = WARNING
    template = "the result holds only under load ({load})"

    load: Message


class WrittenBefore(Message):
    code = "tuning.written-before"
    severity = NOTE
    template = "this tuning wrote its profile when it ended, and another one is there now"


class Kept(Message):
    """The profile in ``file`` was not replaced."""

    code = "tuning.kept"
    severity = NOTE
    template = "nothing: {why}; {file} stays as it is"

    why: Message
    file: str


class TheTuned(Message):
    code = "tuning.the-tuned"
    severity = NOTE
    template = "the tuned profile"


class CopyOfShipped(Message):
    code = "tuning.copy-of-shipped"
    severity = NOTE
    template = "a copy of {shipped}, {reason}"

    shipped: str
    reason: Message


class NothingBetter(Message):
    code = "tuning.nothing-better"
    severity = NOTE
    template = "which no candidate beats[ with the same losses ({refused} faster, but losses differ)]"

    refused: tuple[str, ...] = ()


class BestFound(Message):
    code = "tuning.best-found"
    severity = NOTE
    template = "the best that was found"


class SetsNothing(Message):
    code = "tuning.sets-nothing"
    severity = NOTE
    template = "a profile that sets nothing, as {why}"

    why: Message


class Written(Message):
    """``earlier`` is the file that has the profile that was there before."""

    code = "tuning.written"
    severity = NOTE
    template = (
        "{file}: {what}[; it holds only under load ({load}): measure it again before you use it][; the "
        "earlier one is kept as {earlier}]"
    )

    file: str
    what: Message
    load: Message | None = None
    earlier: str | None = None


class Command(Message):
    code = "tuning.command"
    severity = ADVICE
    template = "{command}"

    command: str


class RecordsOfNodes(Message):
    code = "tuning.records-of-nodes"
    severity = NOTE
    template = "{folder}, and of each node {folder}/NODE"

    folder: str


class SeeRanking(Message):
    code = "tuning.see-ranking"
    severity = NOTE
    template = "{folder}; the best candidate is in {file} there"

    folder: str
    file: str


# --- why the profile that it wrote is what it is ---


class Gain(Message):
    """The speed of a profile over the baseline's, on fresh samples."""

    code = "tuning.gain"
    severity = NOTE
    template = (
        "{ratio:ratio}x baseline speed (95% CI {low:ratio} to {high:ratio}) in {blocks:count block} of fresh samples"
        "[, {load}: measure it again before you use it]"
    )

    ratio: float
    low: float
    high: float
    blocks: int
    load: Message | None = None


class FoundBySearch(Message):
    code = "tuning.found-by-search"
    severity = NOTE
    template = "Found by envkit tune on {day} on {machine}: {gain}[; {over}]"

    day: str
    machine: str
    gain: Message
    over: Message | None = None


class ShippedIsBest(Message):
    code = "tuning.shipped-is-best"
    severity = NOTE
    template = (
        "A copy of {shipped}, {rank}. envkit tune found none faster"
        "[ with the same losses ({refused} faster, but losses differ)] on {day} on {machine}: {gain}[; {over}]"
    )

    shipped: str
    rank: Message
    day: str
    machine: str
    gain: Message
    refused: tuple[str, ...] = ()
    over: Message | None = None


class NothingFound(Message):
    code = "tuning.nothing-found"
    severity = NOTE
    template = "This sets nothing. On {day} on {machine}, envkit tune found that {why}"

    day: str
    machine: str
    why: Message


class Unconfirmed(Message):
    """Why a candidate is in the folder of a record."""

    code = "tuning.unconfirmed"
    severity = NOTE
    template = "The best candidate of a search"


class FromSearch(Message):
    code = "tuning.from-search"
    severity = NOTE
    template = "the search recorded in {record}, not confirmed"

    record: str
