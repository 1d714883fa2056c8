"""Messages of ``envkit tune``: how a tuning ended, and how to go on with it."""

from __future__ import annotations

from envkit.messages import Advice, Message, Note

THIS_MACHINE, NODES = "this machine", "nodes of one type"


class TuningFailed(Message):
    """A worker of the baseline failed. ``then`` is what to do."""

    template = "{problem}; {then}"

    problem: Message
    then: Message


class GoOn(Advice):
    """Advice: go on with the record."""

    template = "continue with: {command}"

    command: str


class FixAndStart(Advice):
    """Advice for a training that never ran."""

    template = "fix that and start again; the record is in {folder}"

    folder: str


class StartNewTuning(Advice):
    """Advice: a setting had no effect, and the record of this tuning would keep that."""

    template = "start a new tuning: this one's record keeps the settings that had no effect"


class ConfirmationEnded(Message):
    """The confirmation of a tuning did not complete."""

    template = "the confirmation ended: {reason}; no profile was written; {then}"

    reason: str
    then: Message


class NoProfileWritten(Message):
    """No candidate could be confirmed."""

    template = "{problem}; no profile was written; the record is in {folder}"

    problem: Message
    folder: str


class AllCandidatesFailed(Message):
    """Every candidate failed; ``problem`` is what happened to the first one."""

    template = "all {candidates} candidates failed, the first ({title}): {problem}"

    candidates: int
    title: str
    problem: Message


class TunedTitle(Note):
    template = "Tuned for {place}: {title}"

    place: str  # THIS_MACHINE or NODES
    title: str


class FromRecord(Note):
    """The record that a tuned profile rests on, with its SHA-256."""

    template = "{file}, SHA-256 {digest}"

    file: str
    digest: str
