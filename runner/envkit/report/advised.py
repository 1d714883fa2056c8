"""The output of ``envkit advise``: where the time goes, what is worth trying and why, and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from envkit.advice import expected, reasons
from envkit.advice.expected import Expected
from envkit.advice.missing import Missing
from envkit.advice.reasons import Reason
from envkit.advice.symptoms import Symptoms
from envkit.checks.doctor.cpu_use_findings import FIX_FIRST
from envkit.checks.doctor.finding import Finding
from envkit.common.messages import About
from envkit.messages import Message
from envkit.profiles import profile
from envkit.profiles.inspection import Inspection
from envkit.rendering import text
from envkit.report import cautions
from envkit.report.messages import advised as messages
from envkit.report.messages import headings
from envkit.report.messages.advice import RACE, RunFor
from envkit.report.messages.certainty import KEPT, NOT_PASSED_ON, Variables
from envkit.report.parts import Part, Row, Rows, Table, together

# Below this share of the usable CPUs, a training waits for something.
BUSY = 0.6


@dataclass(frozen=True)
class Advice:
    """What was seen of a training on this machine, and what is expected of profiles, the most first.

    ``unmeasured`` are profiles that take away a reason that holds, and of which no other training was measured.
    """

    symptoms: Symptoms
    expected: Sequence[Expected]
    unmeasured: Sequence[str]
    left_out: Mapping[str, Message]  # why, by the profile's name
    findings: Sequence[Finding]  # what else is wrong
    usable_cpus: int
    machine: str  # what it is called in a report
    racing: str | None  # the command that has profiles race, where this one did not; None where none can, or it did
    callers_threads: tuple[str, int] | None = None  # a variable that is not passed on, and how many threads it asks for
    passed_on: Sequence[str] = ()  # the caller's variables that it may need to run
    removed: Sequence[str] = ()  # those that it did not get, as they could change the outcome
    disturbed: Sequence[Message] = ()  # what disturbed the watching: then no gains are shown
    missing: Missing | None = None  # the libraries that profiles of ``left_out`` lack

    @property
    def best(self) -> Expected | None:
        """The profile to try first; None where none is worth it."""
        first = next(iter(self.expected), None)
        return first if first is not None and first.is_worth_trying else None

    @property
    def first_finding(self) -> Finding | None:
        """Return the finding that costs more than a profile gains, as CPUs idle; None without one."""
        return next((finding for finding in self.findings if finding.code in FIX_FIRST), None)

    @property
    def reasons(self) -> list[Reason]:
        """Why the training takes longer than it must."""
        return [reason for reason in reasons.REASONS if reason.holds(self.symptoms)]

    def to_json(self) -> dict[str, object]:
        """Return what --json prints, with null for what a race and the comparison of its winner add."""
        return {
            "fix_first": self.first_finding.code if self.first_finding else None,
            "try_first": self.best.profile if self.best else None,
            "symptoms": self.symptoms.to_json(),
            "reasons": [
                {"code": one.code, "seen": text(one.seen(self.symptoms)), "why": text(one.why)} for one in self.reasons
            ],
            "disturbed": [text(cause) for cause in self.disturbed],
            "expected": [self._expected_json(expectation) for expectation in self.expected],
            "unmeasured": list(self.unmeasured),
            "left_out": {name: text(reason) for name, reason in self.left_out.items()},
            "findings": [cautions.finding_document(finding) for finding in self.findings],
            "passed_on": list(self.passed_on),
            "not_passed_on": list(self.removed),
            "missing": asdict(self.missing) if self.missing else None,
            "race": None,
            "confirmation": None,
            "record": None,
        }

    def _expected_json(self, expectation: Expected) -> dict[str, object]:
        """Return an expectation; without its numbers if the watching was disturbed."""
        document = asdict(expectation)
        return {**dict.fromkeys(document), "profile": expectation.profile} if self.disturbed else document


def headline(advice: Advice) -> Message:
    """Return the answer."""
    best = advice.best
    if advice.first_finding is not None:
        return messages.FixFirst(advice.first_finding.seen)
    if best is None and advice.unmeasured:
        return messages.TryFirstUnmeasured(advice.unmeasured[0])
    if best is None and not advice.expected:
        return messages.NothingKnown()
    if best is None:
        return messages.NothingKnownDisturbed() if advice.disturbed else messages.NothingHelps()
    if advice.disturbed:
        return messages.TryFirstDisturbed(best.profile)
    return messages.TryFirst(best.profile, best.gain, best.low, best.high)


def rows(advice: Advice) -> list[Row]:
    """Return what was seen, and why it matters."""
    symptoms = advice.symptoms
    best = [] if advice.best is None else cautions.of_profile(profile.load(advice.best.profile))
    seen = [Row("caution", message) for message in (*_limits(advice), *best)]
    seen.append(Row("watched", _watched(advice)))
    if symptoms.operators is not None:
        parts = sorted(symptoms.operators.items(), key=lambda one: -one[1])
        shares = (messages.Share(share, headings.OPERATOR_KINDS[name]) for name, share in parts if share >= 0.005)
        seen.append(Row("time", messages.Operators(tuple(shares))))
    held = advice.reasons
    seen += [Row("why", messages.ReasonHolds(reason.seen(symptoms), reason.why, reason.code)) for reason in held]
    if advice.callers_threads is not None:
        seen.append(Row("warn", messages.CallersThreads(*advice.callers_threads, advice.usable_cpus)))
    seen += [] if advice.first_finding is not None else _why_idle(advice)
    for finding in advice.findings:
        weight = "bad" if finding.severity == "stop" else "plain"
        seen.append(Row(finding.severity, messages.FindingWithFix(finding.seen, finding.why, finding.fix), weight))
    if advice.passed_on:
        seen.append(Row("variables", Variables(KEPT, tuple(advice.passed_on))))
    if advice.removed:
        seen.append(Row("variables", Variables(NOT_PASSED_ON, tuple(advice.removed))))
    return seen


def _limits(advice: Advice) -> list[Message]:
    """Return why only the order of profiles is of use, if that is so."""
    fitted = expected.fitted()
    if advice.disturbed:
        return [messages.WatchedDisturbed(tuple(advice.disturbed))]
    if advice.expected and advice.machine not in fitted.machines:
        return [messages.OtherMachine(fitted.machine)]
    return []


def _why_idle(advice: Advice) -> list[Row]:
    """Return why CPUs idle, as far as that is known, where no finding says it."""
    symptoms, rows = advice.symptoms, list[Row]()
    if symptoms.threads is not None and symptoms.threads < advice.usable_cpus and not symptoms.helper_cpus:
        rows.append(Row("note", messages.FewThreads(symptoms.threads, advice.usable_cpus)))
    if symptoms.cpus < BUSY * advice.usable_cpus and reasons.CROWDED_CPUS not in advice.reasons:
        rows.append(Row("note", _idle(symptoms)))
    return rows


def table(advice: Advice) -> Table:
    """Return each profile with its expected gain and the reasons for it; those not worth trying last.

    If the watching was disturbed, the table has no gains.
    """
    cells = []
    for expectation in advice.expected:
        ends = f"{expectation.low:.2f} to {expectation.high:.2f}"
        because = _because(expectation, advice.symptoms)
        cells.append([expectation.profile, f"{expectation.gain:.2f}", ends, because])
    weights = ["plain" if expectation.is_worth_trying else "soft" for expectation in advice.expected]
    worth = [*weights, "soft"].index("soft")
    cells[worth:worth] = [
        [name, "-", headings.NOT_MEASURED, _held(name, advice.symptoms)] for name in advice.unmeasured
    ]
    weights[worth:worth] = ["plain"] * len(advice.unmeasured)
    if advice.disturbed:
        return Table(headings.ORDER, [[cell[0], cell[-1]] for cell in cells], (), weights)
    return Table(headings.EXPECTED, cells, (1,), weights)


def closing(advice: Advice) -> list[Row]:
    """Return where the ranges come from, what was left out, and what to do next."""
    fitted = expected.fitted()
    lines = [] if advice.disturbed else [Row("ranges", messages.Ranges(len(fitted.trainings), fitted.machine))]
    if advice.unmeasured:
        lines.append(Row("unmeasured", messages.Unmeasured(tuple(advice.unmeasured))))
    lacking = advice.missing.profiles if advice.missing else ()
    others = {name: why for name, why in advice.left_out.items() if name not in lacking}
    lines += [Row("left out", About(names, why)) for names, why in together(others).items()]
    lines += _not_installed(advice.missing) if advice.missing else []
    if advice.racing is not None:
        from_outside = advice.symptoms.steps is None
        going_on = messages.NoRaceFromOutside(advice.racing) if from_outside else RunFor(RACE, advice.racing)
        lines.append(Row("next", going_on, whole=True))
    return lines


def _not_installed(missing: Missing) -> list[Row]:
    """Return which libraries are not installed, and the commands that install them."""
    lines = [Row("left out", messages.LibrariesMissing(missing.profiles, missing.libraries))]
    if missing.as_root and missing.as_root != missing.without_root:
        command = messages.InstallLibraries(missing.as_root, missing.not_as_root or None)
        lines.append(Row("as root", command, whole=True))
    if missing.without_root:
        command = messages.InstallLibraries(missing.without_root, missing.only_root or None)
        lines.append(Row("no root", command, whole=True))
    return lines


def parts(advice: Advice) -> list[Part]:
    """Return all of it, below the headline."""
    expectations = table(advice)
    last = closing(advice)
    return [
        Rows(rows(advice), bold=True),
        *([expectations] if expectations.rows else []),
        *([Rows(last)] if last else []),
    ]


def machine(inspection: Inspection) -> str:
    """Return what decides whether ranges that were fitted elsewhere hold here: processors and usable CPUs."""
    return f"{inspection['fingerprint']['cpu_model']}, {inspection['facts']['usable_cpus']} usable CPUs"


def _watched(advice: Advice) -> Message:
    symptoms = advice.symptoms
    busy = (symptoms.cpus + symptoms.helper_cpus, advice.usable_cpus)
    if symptoms.steps is None or symptoms.step_s is None:
        return messages.Watched(symptoms.seconds, *busy, place=messages.FROM_OUTSIDE)
    return messages.Watched(symptoms.seconds, *busy, symptoms.steps, 1000 * symptoms.step_s)


def _idle(symptoms: Symptoms) -> Message:
    """Return why a process does not use the CPUs, as far as that is known."""
    if symptoms.helper_cpus > symptoms.cpus:
        return messages.IdleBesideHelpers(symptoms.cpus, symptoms.helper_cpus)
    if symptoms.steps is None:
        return messages.IdleFromOutside(symptoms.cpus)
    return messages.Idle(symptoms.cpus)


def _because(expectation: Expected, symptoms: Symptoms) -> str:
    if expectation.is_worth_trying:
        return _held(expectation.profile, symptoms) or headings.GAINED
    against = reasons.why_not(expectation.profile, symptoms)
    return text(against) if against else headings.NOT_GAINED


def _held(profile: str, symptoms: Symptoms) -> str:
    """Name those of a profile's reasons that hold."""
    return ", ".join(reason.code for reason in reasons.why_to_try(profile, symptoms))
