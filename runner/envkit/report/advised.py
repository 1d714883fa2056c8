"""What `envkit advise` says: what the time goes to, what is worth trying and why, and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from envkit.advice import expected, reasons
from envkit.advice.expected import Expected
from envkit.advice.reasons import Reason
from envkit.advice.symptoms import CONVOLUTION, MATRIX, MOVING, OTHER, OUTSIDE, RECURRENT, Symptoms
from envkit.analysis.summary import Summary
from envkit.checks.doctor.finding import Finding
from envkit.checks.messages import WithFix
from envkit.profiles import profile
from envkit.rendering import text
from envkit.report import cautions, wording
from envkit.report.finding_document import finding_document
from envkit.report.parts import Part, Row, Rows, Table
from envkit.stats.verdict import Verdict

KINDS = {
    MATRIX: "matrix products",
    RECURRENT: "recurrent layers",
    CONVOLUTION: "convolutions",
    MOVING: "copying and filling memory",
    OTHER: "other operators",
    OUTSIDE: "outside of operators",
}
# Below this share of the usable CPUs, a training waits for something.
BUSY = 0.6
FEW = "where the script chooses that itself (torch.set_num_threads), no profile changes it"
NOTHING = "No profile is expected to make this faster."


@dataclass(frozen=True)
class Advice:
    """What was seen of a training on this machine, and what is expected of profiles, the most first.

    ``unmeasured`` are profiles that take away a reason that holds, and of which no other training was measured.
    """

    symptoms: Symptoms
    expected: Sequence[Expected]
    unmeasured: Sequence[str]
    left_out: Mapping[str, str]  # why, by the profile's name
    findings: Sequence[Finding]  # what else is wrong
    usable_cpus: int
    machine: str  # what it is called in a report
    proving: str | None  # the command that measures the first of them, or None where none can

    @property
    def best(self) -> Expected | None:
        """The profile to try first; None where none is worth it."""
        first = next(iter(self.expected), None)
        return first if first is not None and first.is_worth_trying else None

    @property
    def reasons(self) -> list[Reason]:
        """Why the training takes longer than it must."""
        return [reason for reason in reasons.REASONS if reason.holds(self.symptoms)]

    def to_json(self) -> dict[str, Any]:
        return {
            "try_first": self.best.profile if self.best else None,
            "symptoms": self.symptoms.to_json(),
            "reasons": [{"code": one.code, "seen": one.seen(self.symptoms), "why": one.why} for one in self.reasons],
            "expected": [asdict(one) for one in self.expected],
            "unmeasured": list(self.unmeasured),
            "left_out": dict(self.left_out),
            "findings": [finding_document(one) for one in self.findings],
        }


def headline(advice: Advice) -> str:
    """The answer, in a line."""
    best = advice.best
    if best is None:
        return NOTHING if advice.expected else "No profile that is known from other trainings applies here."
    return f"Try {best.profile} first: {best.gain:.2f}x baseline speed is expected ({_range(best)})."


def rows(advice: Advice) -> list[Row]:
    """What was seen, and why it matters."""
    symptoms = advice.symptoms
    best = [] if advice.best is None else cautions.of_profile(profile.load(advice.best.profile))
    seen = [*(Row("caution", one) for one in best), Row("watched", _watched(advice))]
    if symptoms.operators is not None:
        parts = sorted(symptoms.operators.items(), key=lambda one: -one[1])
        seen.append(Row("time", ", ".join(f"{share:.0%} {KINDS[name]}" for name, share in parts if share >= 0.005)))
    held = advice.reasons
    seen += [Row("why", f"{reason.seen(symptoms)}: {reason.why} ({reason.code})") for reason in held]
    if symptoms.threads is not None and symptoms.threads < advice.usable_cpus and not symptoms.helper_cpus:
        seen.append(Row("note", f"it computes with {symptoms.threads} of {advice.usable_cpus} possible threads: {FEW}"))
    if symptoms.cpus < BUSY * advice.usable_cpus and reasons.CROWDED_CPUS not in held:
        seen.append(Row("note", _idle(symptoms)))
    seen += [
        Row(one.severity, WithFix(one.seen, one.why, one.fix), "bad" if one.severity == "stop" else "plain")
        for one in advice.findings
    ]
    return seen


def table(advice: Advice) -> Table:
    """Each profile with what is expected of it, and what it would take away; those not worth trying last."""
    found = [[one.profile, f"{one.gain:.2f}", _range(one), _because(one, advice.symptoms)] for one in advice.expected]
    weights = ["plain" if one.is_worth_trying else "soft" for one in advice.expected]
    worth = [*weights, "soft"].index("soft")
    found[worth:worth] = [[name, "-", "not measured yet", _held(name, advice.symptoms)] for name in advice.unmeasured]
    weights[worth:worth] = ["plain"] * len(advice.unmeasured)
    return Table(("profile", "expected", "7 of 10 lie within", "because"), found, (1,), weights)


def closing(advice: Advice) -> list[Row]:
    """Where the ranges come from, what was left out, and what to do next."""
    fitted = expected.fitted()
    told = f"from {len(fitted.trainings)} trainings that were measured on {fitted.machine}"
    other = "" if fitted.machine == advice.machine else "; on another machine, as this, only the order is of use"
    found = [Row("ranges", f"{told}{other}")]
    if advice.unmeasured:
        names = ", ".join(advice.unmeasured)
        found.append(Row("unmeasured", f"{names}: these trainings were not run under it; envkit matrix measures it"))
    found += [Row("left out", f"{names}: {why}") for names, why in wording.together(advice.left_out).items()]
    if advice.best is not None and advice.proving is not None:
        found.append(Row("next", f"prove it: {advice.proving}", whole=True))
    return found


def parts(advice: Advice) -> list[Part]:
    """All of it, below the headline."""
    found = table(advice)
    return [Rows(rows(advice), bold=True), *([found] if found.rows else []), Rows(closing(advice))]


def machine(inspection: Mapping[str, Any]) -> str:
    """What tells whether ranges that were fitted elsewhere hold here: processors, and how many can be used."""
    return f"{inspection['fingerprint']['cpu_model']}, {inspection['facts']['usable_cpus']} usable CPUs"


def proof(best: Expected, summary: Summary) -> str:
    """How what was measured compares with what was expected."""
    found = next((one.speedup for one in summary.comparisons if one.arm == best.profile), None)
    was_expected = f"{best.gain:.2f}x ({_range(best)}) was expected"
    if found is None:
        return f"Not proved: {was_expected}, and nothing was found out."
    measured = f"{found.ratio:.2f}x ({found.low:.2f} to {found.high:.2f}) was measured, and {was_expected}"
    load = next(one.load for one in summary.comparisons if one.arm == best.profile)
    if load is not None:
        return f"Not proved: {text(load.message)}, {measured}. Measure again without that load."
    if found.verdict != Verdict.FASTER:
        return f"Not proved: {measured}."
    if best.low <= found.ratio <= best.high:
        return f"Proved, as expected: {measured}."
    return f"Proved, and {'more' if found.ratio > best.high else 'less'} than expected: {measured}."


def _watched(advice: Advice) -> str:
    symptoms = advice.symptoms
    busy = f"{symptoms.cpus + symptoms.helper_cpus:.1f} of {advice.usable_cpus} CPUs busy"
    if symptoms.steps is None or symptoms.step_s is None:
        return f"{symptoms.seconds:.0f} s from outside; {busy}"
    return f"{symptoms.steps} steps of {_time(symptoms.step_s)} in {symptoms.seconds:.1f} s; {busy}"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _idle(symptoms: Symptoms) -> str:
    """Why a process does not use the CPUs, as far as can be told."""
    if symptoms.helper_cpus > symptoms.cpus:
        return (
            f"it keeps {symptoms.cpus:.1f} CPUs busy itself and processes beside it {symptoms.helper_cpus:.1f}: it "
            "waits for its input, or for other ranks, and no profile changes that (envkit loader-grid)"
        )
    idle = f"it keeps {symptoms.cpus:.1f} CPUs busy and waits else, for input or for one thread"
    return f"{idle}: no profile changes that, and more DataLoader workers may"


def _range(one: Expected) -> str:
    return f"{one.low:.2f} to {one.high:.2f}"


def _because(one: Expected, symptoms: Symptoms) -> str:
    if one.is_worth_trying:
        return _held(one.profile, symptoms) or "trainings like this gained by it"
    return reasons.why_not(one.profile, symptoms) or "trainings like this did not gain by it"


def _held(profile: str, symptoms: Symptoms) -> str:
    """Name those of a profile's reasons that hold."""
    return ", ".join(reason.code for reason in reasons.why_to_try(profile, symptoms))
