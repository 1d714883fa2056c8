"""``envkit advise -- COMMAND``: watch a training for some seconds, have the best profiles race, confirm the winner."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.text import Text

from envkit import engines
from envkit.advice import expected, reasons
from envkit.advice.candidates import candidates, for_small_blocks
from envkit.advice.missing import missing, os_release
from envkit.advice.symptoms import Symptoms, of_process, of_sample
from envkit.bench import early_checks, private_values, race, room, writes
from envkit.bench.arms import Arm
from envkit.bench.job import Job
from envkit.bench.parse_sample import parse_sample
from envkit.bench.prepare import prepare
from envkit.bench.study import REFERENCE_PROFILE, StoppingRule, Study
from envkit.checks import steady_process
from envkit.checks.doctor import diagnose_process
from envkit.checks.doctor.cpu_use_findings import TOO_FEW_THREADS, trainer_of
from envkit.checks.doctor.finding import Finding, Situation
from envkit.checks.interference import interference_in
from envkit.cli import engine_options, measuring, measuring_options, racing
from envkit.cli.arguments import add_output_options, duration, is_quiet, refuse, refuse_others, words
from envkit.cli.commands import messages
from envkit.cli.commands.help_messages import ADVISE
from envkit.cli.parser import Parser
from envkit.cli.racing import Racing
from envkit.cli.user_command import add_folder_options, folder_options, shortened
from envkit.cli.workload_file import WARMUP_STEPS
from envkit.cli.workload_messages import NotWatched
from envkit.common import codec
from envkit.common.errors import MEASURED, InputError
from envkit.common.machine_lock import machine_lock
from envkit.common.progress import Progress
from envkit.engines.inspect_image import inspect
from envkit.engines.local import LocalEngine
from envkit.engines.measurement import Measurement, TrainingDocument, Usage, probe
from envkit.messages import Message
from envkit.profiles import profile
from envkit.profiles.inspection import Inspection
from envkit.rendering import text
from envkit.report import advised, terminal
from envkit.report.advised import Advice
from envkit.tuning.narrow import require, why
from envkit.worker.evidence.cpu_use import chosen_by, is_few
from envkit.worker.libraries import LIBRARIES, is_alone
from envkit.worker.request import RunCommand, UserCommand
from envkit.worker.user_command import second_openmp

# How long steps are watched, and the longest wait for enough of them, in seconds: some trainings start for a minute.
WATCH_S, WATCH_LIMIT_S = 10.0, 75.0
# What a race has in common with the watching, and what means nothing to a process that runs already.
SAME = ("engine", *engines.base.EngineOptions.names(), "keep_env", "link", "in_place")
OF_RACE = ("budget", "output", "max_memory")
NOT_WITH_PID = (*OF_RACE, "watch_only", "resume", *SAME)
WITH_RESUME = ("command", "resume", "json", "quiet", "output")


def add_arguments(parser: Parser) -> None:
    parser.usage = "envkit advise [options] -- COMMAND... | envkit advise --pid PID"
    parser.add_argument("without_dashes", metavar="COMMAND", nargs="*",
                        help="after --: watch this training for some seconds, then measure profiles by it")  # fmt: skip
    parser.add_argument("--pid", metavar="PID", type=int,
                        help="watch this running training from outside, and leave it running")  # fmt: skip
    parser.add_argument("--budget", metavar="TIME", type=duration,
                        help=f"how long all this takes, e.g. 10m (default: {racing.BUDGET_S / 60:g}m, or longer if the "
                        "training starts slowly)")  # fmt: skip
    measuring_options.add_max_memory(parser)
    parser.add_argument("--watch-only", action="store_true", help="stop after watching, and measure nothing")
    parser.add_argument("--resume", metavar="DIR", type=Path, help="continue the interrupted race in this folder")
    parser.add_argument("--keep-env", metavar="NAME", action="append", advanced=True,
                        help="pass this variable on although it can change the outcome")  # fmt: skip
    parser.add_argument("--output", metavar="DIR", type=Path,
                        help="write the records to DIR (default: in ./results)")  # fmt: skip
    add_folder_options(parser)
    engine_options.add(parser, engine_options.OF_COMMAND, ADVISE["engine"])
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.pid is not None:
        if arguments.user_command is not None or arguments.without_dashes:
            raise InputError(messages.EitherOr("advise", "--pid"))
        refuse(arguments, NOT_WITH_PID, "--pid")
        return _show(_of_process(arguments.pid, arguments), arguments.json)
    if arguments.resume is not None:
        refuse_others(arguments, WITH_RESUME, "--resume")
        return racing.resume(arguments.resume, arguments)
    if arguments.without_dashes:
        raise InputError(messages.DashesMissing("advise", ("envkit", "advise", "--", *arguments.without_dashes)))
    if not arguments.user_command:
        raise InputError(messages.NothingToAdviseOn())
    if arguments.watch_only:
        refuse(arguments, OF_RACE, "--watch-only")
    study = _study(arguments)
    if study.user_command is not None:
        early_checks.require_program(study.user_command, study.arms[0].engine == "local")
    if arguments.budget is not None:
        _require_room(study)
    if not arguments.watch_only:
        folder = arguments.output or measuring.new_folder("advise")
        early_checks.require_folder(folder)
        early_checks.require_folder(folder / race.FOLDER)
    if not is_quiet(arguments):
        measuring.say_of_shared(study.user_command)
    with machine_lock():
        engines.remove_leftovers()
        watched = _of_command(study, arguments)
        if arguments.watch_only or not watched.candidates:
            return _show(watched.advice, arguments.json)
        if not arguments.json:
            _show(watched.advice, as_json=False)
        return _race(study, watched, arguments)


def _study(arguments: argparse.Namespace) -> Study:
    """The command under the baseline alone."""
    argv = tuple(arguments.user_command)
    return Study(
        title="advise",
        stopping=StoppingRule(budget_s=arguments.budget or racing.BUDGET_S, max_memory=arguments.max_memory),
        workload=shortened(shlex.join(argv)),
        user_command=UserCommand(argv, str(Path.cwd().resolve()), **folder_options(arguments)),
        engine_options=engine_options.from_arguments(arguments),
        keep_env=tuple(arguments.keep_env or ()),
    ).with_arms([Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, arguments.engine or "local")])


@dataclass(frozen=True)
class Watched:
    """A training that was watched. Times are in seconds."""

    advice: Advice
    candidates: Sequence[str]  # the profiles to race, the best first
    start_s: float  # of a process, before the first step that counts
    seconds: float  # that the watching took
    steps: int  # that were watched
    peak_memory_bytes: float  # 0 if unknown


def _of_command(study: Study, arguments: argparse.Namespace) -> Watched:
    """Watch the command, and return the advice and what can race."""
    prepared = prepare(study)
    inspection = prepared.job.context.seen[study.arms[0].target]["inspection"]
    applying, left_out = _apply(inspection)
    instead = _instead(left_out, inspection)
    argv = arguments.user_command
    sample, seconds = _watch(prepared.job, argv, quiet=is_quiet(arguments))
    measured = codec.parse(sample, Measurement)
    symptoms = of_sample(measured)
    if sample["evidence"].get("gpu"):
        applying, instead, left_out = [], [], {**left_out, **dict.fromkeys(applying, messages.ComputesOnGpu())}
    clash = _clashing(applying, sample["evidence"], inspection)
    applying, left_out = [name for name in applying if name not in clash], {**left_out, **clash}
    hidden = private_values.hidden(sample, prepared.job.context.kept, prepared.job.context.inherited)
    findings = _findings(inspection, trainer_of(codec.parse(hidden, Measurement)))
    applying, left_out = _unless_few_threads(findings, applying, left_out)
    applies = partial(_applies, inspection=inspection)
    small = for_small_blocks(symptoms, {*expected.fitted().fits, *instead}, applies)
    instead = [*instead, *small] if applying else []
    advice = _advice(symptoms, applying, left_out, inspection, instead, findings)
    if study.arms[0].engine != "local" and advice.missing is not None:
        advice = replace(advice, missing=advice.missing.without_commands)  # they would install on the host
    can_race = bool(applying) and advice.first_finding is None
    racers = candidates(advice.expected, advice.unmeasured, left_out, applies) if can_race else []
    again = shlex.join(["envkit", "advise", *words(arguments, SAME), "--", *argv])
    advice = replace(
        advice,
        racing=again if arguments.watch_only and racers else None,
        callers_threads=_callers_threads(study, advice.usable_cpus),
        passed_on=tuple(prepared.job.given),
        removed=prepared.job.context.removed,
        disturbed=interference_in(measured.usage, measured.seconds or sum(measured.step_s)),
    )
    peak_bytes = sample.get("peak_memory_bytes", 0)
    return Watched(advice, racers, _start_s(measured, seconds), seconds, len(measured.step_s), peak_bytes)


def _start_s(measured: Measurement, seconds: float) -> float:
    """Return how long a process takes before the first step that counts, where the whole worker took ``seconds``."""
    operators = measured.observed.operators if measured.observed else None
    return max(0.0, seconds - sum(measured.step_s) - (operators.seconds if operators else 0.0))


def _watch(job: Job, argv: Sequence[str], quiet: bool) -> tuple[TrainingDocument, float]:
    """Return the sample of a user's command while it takes its steps, and the worker's seconds.

    Raise InputError if it can't be watched.
    """
    (arm,), command = job.study.arms, job.study.user_command
    assert command is not None, "a command of the user's is watched"
    work = RunCommand(
        replace(command, metric=None, loss_metric=None), WARMUP_STEPS, watch_s=WATCH_S, watch_limit_s=WATCH_LIMIT_S
    )
    with Progress(0.0, quiet=quiet) as progress:
        progress.start("watching", shlex.join(argv), 0.0)
        outcome = job.context.engines[arm.target].run(job.launch(arm, work))
        sample, problem = parse_sample(outcome, (), job.study.options)
        if sample is not None:
            problem = writes.outside(job.study, sample)
            if (written := writes.written_files(job.study, sample)) is not None:
                progress.say(written)
    if problem is not None:
        failed, context = NotWatched(argv[0], job.explained(problem)), job.context
        raise InputError(private_values.of_message(failed, context.kept, context.inherited))
    assert sample is not None, "there is a sample or a problem"
    return sample, outcome.seconds


def _callers_threads(study: Study, usable: int) -> tuple[str, int] | None:
    """Return which variable of the caller's has it train with few threads, and how many, where that is not passed on.

    A container has no variables of the caller's.
    """
    name, threads = chosen_by({name: value for name, value in os.environ.items() if name not in study.keep_env})
    if name is None or threads is None or study.arms[0].engine != "local" or not is_few(threads, usable):
        return None
    return f"{name}={threads}", threads


def _apply(inspection: Inspection) -> tuple[list[str], dict[str, Message]]:
    """Return the fitted profiles that apply here, and why the others do not."""
    applying: list[str] = []
    left_out: dict[str, Message] = {}
    for name in expected.fitted().fits:
        try:
            require(profile.load(name), inspection)
            applying.append(name)
        except InputError as error:
            left_out[name] = why(error)
    return applying, left_out


def _clashing(names: Iterable[str], evidence: Mapping[str, object], inspection: Inspection) -> dict[str, Message]:
    """Return why profiles abort the training: each preloads an OpenMP runtime, and it loads another that can't share.

    ``names`` are the profiles to look at.
    """
    mapped = probe(evidence, "openmp").get("mapped")
    runtimes = [path for path in map(str, mapped) if is_alone(path)] if isinstance(mapped, list) else []
    clashes: dict[str, Message] = {}
    for name in names:
        for library in (runtime for runtime in profile.load(name).preload if LIBRARIES[runtime].aborts_beside):
            preloaded = str(inspection["libraries"][library]["path"])
            others = [path for path in runtimes if not second_openmp.is_same(path, preloaded)]
            if others:
                clashes[name] = messages.HasOpenmp(others[0], preloaded)
    return clashes


def _instead(left_out: Iterable[str], inspection: Inspection) -> list[str]:
    """Return what applies here of the profiles that those left out extend, where no fit tells what they gain."""
    extended = dict.fromkeys(profile.load(excluded).extends for excluded in left_out)
    fits = expected.fitted().fits
    return [name for name in extended if name is not None and name not in fits and _applies(name, inspection)]


def _applies(name: str, inspection: Inspection) -> bool:
    """Return whether a profile would have an effect on a machine."""
    try:
        require(profile.load(name), inspection)
    except InputError:
        return False
    return True


def _advice(
    symptoms: Symptoms,
    applying: Iterable[str],
    left_out: Mapping[str, Message],
    inspection: Inspection,
    instead: Iterable[str],
    findings: Sequence[Finding] = (),
    racing_by: str | None = None,
) -> Advice:
    usable, machine = int(inspection["facts"]["usable_cpus"]), advised.machine(inspection)
    gains = expected.expected(symptoms, applying, here=expected.of_machine(inspection))
    unmeasured = [name for name in instead if reasons.why_to_try(name, symptoms)]
    lacking = missing(left_out, inspection, os_release())
    return Advice(symptoms, gains, unmeasured, left_out, findings, usable, machine, racing_by, missing=lacking)


def _of_process(pid: int, arguments: argparse.Namespace) -> Advice:
    """Return what is advised for a process that runs already, from what can be seen of it from outside."""
    steady_process.require(pid)
    engine, inherited = engine_options.engine(arguments)
    if isinstance(engine, LocalEngine):
        engine = engine.for_process(pid)
    inspection = inspect(engine, inherited)
    observed = steady_process.watch(pid, WATCH_S)
    findings = _findings(inspection, {"cpu_use": observed.get("cpu_use")})
    applying, left_out = _unless_few_threads(findings, *_apply(inspection))
    instead = _instead(left_out, inspection) if applying else []
    start_it = "envkit advise -- COMMAND" if applying else None
    advice = _advice(of_process(observed), applying, left_out, inspection, instead, findings, start_it)
    usage = codec.parse(observed["usage"], Usage)
    return replace(advice, disturbed=interference_in(usage, observed["seconds"]))


def _findings(inspection: Inspection, evidence: Mapping[str, object]) -> list[Finding]:
    return diagnose_process(Situation(inspection["facts"], inspection["fingerprint"], None, evidence))


def _unless_few_threads(
    findings: Sequence[Finding], applying: list[str], left_out: dict[str, Message]
) -> tuple[list[str], dict[str, Message]]:
    """Return the profiles to tell a gain of: none for a training with too few threads, as others had all of theirs."""
    if not any(finding.code == TOO_FEW_THREADS for finding in findings):
        return applying, left_out
    return [], {**left_out, **dict.fromkeys(applying, messages.ThreadsFirst())}


def _show(advice: Advice, as_json: bool) -> int:
    """Print the advice, and return the exit status."""
    if as_json:
        print(json.dumps(advice.to_json()))
        return MEASURED
    out = terminal.console()
    out.print(Text(text(advised.headline(advice)), "bold"))
    out.print()
    terminal.show_parts(advised.parts(advice), out)
    return MEASURED


def _timed(study: Study, steps: int) -> Study:
    """Return the study with samples of so many timed ``steps`` of the command."""
    assert study.user_command is not None, "it is watched"
    return replace(
        study, user_command=replace(study.user_command, optimizer_steps=steps, warmup_lines=WARMUP_STEPS)
    ).with_arms(study.arms)


def _require_room(study: Study) -> None:
    """Raise TooShort where no machine could confirm a profile within the budget."""
    arms = (study.reference, replace(study.reference, name="any", profile="any"))
    room.require(_timed(study, race.FEWEST_STEPS).with_arms(arms).completed(""))


def _race(study: Study, watched: Watched, arguments: argparse.Namespace) -> int:
    """Have the candidates race, and confirm the winner."""
    step_s, document = watched.advice.symptoms.step_s, watched.advice.to_json()
    assert step_s is not None, "steps were watched"
    steps = race.sample_steps(step_s, watched.start_s, watched.steps)
    sample_s = watched.start_s + steps * step_s
    with racing.beside(document):
        plan = racing.planned(len(watched.candidates), sample_s, watched.seconds, arguments.budget)
    limit, peak_bytes = study.stopping.max_memory, watched.peak_memory_bytes
    if limit is not None and peak_bytes:
        study = replace(study, stopping=replace(study.stopping, most_memory_bytes=(1 + limit) * peak_bytes))
    return racing.run(_timed(study, steps), watched.candidates, plan, watched.seconds, Racing.of(arguments, document))
