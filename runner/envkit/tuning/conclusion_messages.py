"""Messages on what a search found, and why the profile that it wrote is what it is.

Speedups are ratios: above 1 is faster. Shares are of 1, times in seconds.
"""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

IMPORTANCE_NOTE = (
    "share: of the variance of the candidates' speedups (Breiman 2001); speedups: predicted by the search, "
    "not confirmed"
)

BEST_SHIPPED, BEST_TRIED = "the best shipped profile", "the best shipped profile tried"
BEST_FOUND, UNBEATEN = "the best that was found", "which no candidate beats"

# Labels of lines, and headers of tables.
SHIPPED, SEARCH, WHY = "Shipped", "Search", "Why"
FAILED, UNTRIED, LEFT_OUT = "Failed", "Untried", "Left out"
WRITTEN, USE, BENCH, NEXT = "Written", "Use", "Bench", "Next"
SYSTEM, RECORD, DETAILS = "System", "Record", "Details"
IMPORTANCE = ("parameter", "share (95% CI)", "best level", "speedup over the first level (95% CI)")
RANKING = ("speedup", "95% CI", "trials", "candidate")


# --- what it found ---


class OverShipped(Note):
    """The tuned profile's speed over that of the best shipped one, and the verdict on that."""

    template = "tuned has {ratio:ratio}x the speed of {shipped}, {rank} (95% CI {low:ratio} to {high:ratio}): {verdict}"

    ratio: float
    low: float
    high: float
    shipped: str
    rank: str
    verdict: str


class Searched(Note):
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


class LevelMatters(Note):
    template = "{parameter}={level} {share:percent}"

    parameter: str
    level: str
    share: float


class Matter(Note):
    template = "{levels} of the variance of the speedups"

    levels: tuple[Message, ...]


class FirstFailure(Caution):
    """``problem`` is a clause with the worker as its subject."""

    template = "{failed:count candidate}, the first {candidate}: its worker {problem}"

    failed: int
    candidate: str
    problem: Message


class Untried(Caution):
    template = "{number:count shipped profile} not tried for lack of time: {profiles:list}"

    number: int
    profiles: tuple[str, ...]


class LeftOutBecause(Note):
    code = "tuning.left-out"
    template = "{what:list}: {why}"

    what: tuple[str, ...]
    why: Message


class AtMost(Note):
    """The share of a parameter that matters nothing."""

    template = "none (at most {high:.0%})"

    high: float


class RankingNote(Note):
    template = (
        "each interval is for one candidate alone; the first of {candidates} was also lucky, and is not confirmed"
    )

    candidates: int


# --- what it wrote ---


class NoneFaster(Note):
    """``refused`` are the arms that are faster with other losses than the baseline.

    ``over_memory`` are faster with a peak memory above the limit.
    """

    template = (
        "no profile is faster than the baseline[ with the same losses ({refused} faster, but losses differ)]"
        "[ within --max-memory ({over_memory} faster, but above it)]"
    )

    refused: tuple[str, ...] = ()
    over_memory: tuple[str, ...] = ()


class HoldsUnderLoad(Caution):
    template = "the result holds only under load ({load})"

    load: Message


class WrittenBefore(Note):
    template = "this tuning wrote its profile when it ended, and another one is there now"


class Kept(Note):
    """The profile in ``file`` was not replaced."""

    template = "nothing: {why}; {file} stays as it is"

    why: Message
    file: str


class TheTuned(Note):
    template = "the tuned profile"


class CopyOfShipped(Note):
    """The written profile is a shipped one. ``refused`` are faster, with other losses."""

    template = "a copy of {shipped}, {rank}[ with the same losses ({refused} faster, but losses differ)]"

    shipped: str
    rank: str  # BEST_FOUND or UNBEATEN
    refused: tuple[str, ...] = ()


class SetsNothing(Note):
    template = "a profile that sets nothing, as {why}"

    why: Message


class Written(Note):
    """``earlier`` is the file that has the profile that was there before."""

    template = (
        "{file}: {what}[; it holds only under load ({load}): measure it again before you use it][; the "
        "earlier one is kept as {earlier}]"
    )

    file: str
    what: Message
    load: Message | None = None
    earlier: str | None = None


class Command(Advice):
    template = "{command}"

    command: str


class RecordsOfNodes(Note):
    template = "{folder}, and of each node {folder}/NODE"

    folder: str


class SeeRanking(Note):
    template = "{folder}; the best candidate is in {file} there"

    folder: str
    file: str


# --- why the profile that it wrote is what it is ---


class CloseToNoise(Note):
    """``low`` is the low end of the interval."""

    template = "close to the noise: rely on no more than {low:ratio}x"

    low: float


class Gain(Note):
    """The speed of a profile over the baseline's, on fresh samples."""

    template = (
        "{ratio:ratio}x baseline speed (95% CI {low:ratio} to {high:ratio}) in {blocks:count block} of fresh samples"
        "[, {load}: measure it again before you use it][, {noise}]"
    )

    ratio: float
    low: float
    high: float
    blocks: int
    load: Message | None = None
    noise: Message | None = None  # CloseToNoise where the ratio may be overstated


class FoundBySearch(Note):
    template = "Found by envkit tune on {day} on {machine}: {gain}[; {over}]"

    day: str
    machine: str
    gain: Message
    over: Message | None = None


class ShippedIsBest(Note):
    template = (
        "A copy of {shipped}, {rank}. envkit tune found none faster"
        "[ with the same losses ({refused} faster, but losses differ)] on {day} on {machine}: {gain}[; {over}]"
    )

    shipped: str
    rank: str
    day: str
    machine: str
    gain: Message
    refused: tuple[str, ...] = ()
    over: Message | None = None


class NothingFound(Note):
    template = "This sets nothing. On {day} on {machine}, envkit tune found that {why}"

    day: str
    machine: str
    why: Message


class Unconfirmed(Note):
    """Why a candidate is in the folder of a record."""

    template = "The best candidate of a search"


class FromSearch(Note):
    template = "the search recorded in {record}, not confirmed"

    record: str
