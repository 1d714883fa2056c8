"""Messages of ``envkit tune``: how a tuning ended, and how to go on with it."""

from __future__ import annotations

from envkit.messages import Message, Severity


class NoProfileToName(Message):
    """--profile was given for a tuning that writes no profile."""

    code = "cli.no-profile-to-name"
    template = "--profile has no effect with --exhaustive, which writes no profile; leave it out"


class GoOnAfter(Message):
    """A tuning stopped at a problem that the user can solve."""

    code = "cli.go-on-after"
    template = "{problem}; then continue with: {command}"

    problem: Message
    command: str


class NameAnother(Message):
    """The profile can't be written where the tuning was to write it. ``command`` goes on, with another name."""

    code = "cli.name-another"
    template = "{problem}; continue with: {command} --profile FILE.yaml"

    problem: Message
    command: str


class TuningFailed(Message):
    """A worker of the baseline failed. ``then`` is what to do."""

    code = "cli.tuning-failed"
    template = "{problem}; {then}"

    problem: Message
    then: Message


class GoOn(Message):
    """Advice: go on with the record."""

    code = "cli.go-on"
    severity = Severity.ADVICE
    template = "continue with: {command}"

    command: str


class FixAndStart(Message):
    """Advice for a training that never ran."""

    code = "cli.fix-and-start"
    severity = Severity.ADVICE
    template = "fix that and start again; the record is in {folder}"

    folder: str


class StartNewTuning(Message):
    """Advice: a setting had no effect, and the record of this tuning would keep that."""

    code = "cli.start-new-tuning"
    severity = Severity.ADVICE
    template = "start a new tuning: this one's record keeps the settings that had no effect"


class ConfirmationEnded(Message):
    """The confirmation of a tuning did not complete."""

    code = "cli.confirmation-ended"
    template = "the confirmation ended: {reason}; no profile was written; {then}"

    reason: str
    then: Message


class NoProfileWritten(Message):
    """No candidate could be confirmed."""

    code = "cli.no-profile-written"
    template = "{problem}; no profile was written; the record is in {folder}"

    problem: Message
    folder: str


class AllCandidatesFailed(Message):
    """Every candidate failed; ``problem`` is what happened to the first one."""

    code = "cli.all-candidates-failed"
    template = "all {candidates} candidates failed, the first ({title}): {problem}"

    candidates: int
    title: str
    problem: Message


class TunedTitle(Message):
    """The title of a profile that was tuned."""

    code = "cli.tuned-title"
    severity = Severity.NOTE
    template = "Tuned for this machine: {title}"

    title: str


class FromRecord(Message):
    """The record that a tuned profile rests on, with its SHA-256."""

    code = "cli.from-record"
    severity = Severity.NOTE
    template = "{file}, SHA-256 {digest}"

    file: str
    digest: str
