"""``envkit doctor``: find what is wrong before measuring, with a profile or with a user's command."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.text import Text

from envkit import engines
from envkit.advice.symptoms import of_process
from envkit.bench import early_checks, private_values
from envkit.bench.parse_sample import parse_document
from envkit.bench.problem_messages import NoDocument
from envkit.bench.study import REFERENCE_PROFILE
from envkit.checks.core_measurement import measure, obstacle_to_measuring
from envkit.checks.core_messages import CoresMeasured
from envkit.checks.doctor import diagnose
from envkit.checks.doctor.finding import Finding, Situation, found
from envkit.checks.doctor.machine_findings import SHM_BYTES
from envkit.checks.doctor.running_process import watch as watch_process
from envkit.checks.effect import check, shown
from envkit.checks.finding_messages import MeasureRanks, RanksOnly, Unmet, WorkerFailed, remedy
from envkit.checks.process_limit import cause_of
from envkit.cli import engine_options
from envkit.cli.argument_messages import COMMAND
from envkit.cli.arguments import duration, no_effect, option
from envkit.cli.commands.messages import EitherOr
from envkit.cli.doctor_messages import (
    EXIT_STATUSES,
    NOTHING_FOUND,
    CantStart,
    CommandWithoutDashes,
    DoctorTrialFailed,
    NoCommandToWatch,
    StoppedWatching,
    WatchedFailed,
    WatchedShortly,
)
from envkit.cli.ending import end_with
from envkit.cli.execution import on_machine
from envkit.cli.messages import OptionAlone
from envkit.cli.parser import Parser
from envkit.common.errors import FAILED, MEASURED, InputError
from envkit.common.machine_lock import machine_lock
from envkit.common.messages import About
from envkit.engines import measured_cores
from envkit.engines.base import EngineOptions, Launch, Outcome
from envkit.engines.inspect_image import inspect, require_own_workloads
from envkit.engines.process import end
from envkit.messages import Message, Printed
from envkit.profiles import catalogue, profile
from envkit.profiles.environment import Environment, clean
from envkit.profiles.inspection import Inspection
from envkit.profiles.resolve import resolve
from envkit.rendering import text
from envkit.report import issue, terminal
from envkit.report.cautions import finding_document
from envkit.worker.cgroup import cpu_quota, memory_counters, ran_out
from envkit.worker.evidence.limits import shm_bytes
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.gpus import CHOOSING
from envkit.worker.host import expand_cpu_list, usable_cpus
from envkit.worker.measure.machine_load import watch as watch_machine
from envkit.worker.messages.user_command import NoOutput
from envkit.worker.modes import CUDA, Options
from envkit.worker.performance_variables import is_performance_variable
from envkit.worker.request import Train, UserCommand

LOAD_S = 3.0
WATCH_S = 10.0
SHORTEST_S = 2.0
ENDING_S = 10.0
LOOK = "look:3:0"  # has the evidence hook say after the third step of an optimizer how the process computes
# Enough for every library to have started its threads.
TRIAL = Train("cnn", SYNTHETIC, warmup_steps=1, steps=3)
# What a profile expects of NCCL, which one process does not use.
OF_RANKS = "nccl."
COLOURS = {"stop": "bold red", "warn": "bold yellow", "note": "bold"}


def add_arguments(parser: Parser) -> None:
    parser.epilog = EXIT_STATUSES
    parser.usage = "envkit doctor [options] [PROFILE] | envkit doctor [options] -- COMMAND..."
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="name of a profile, or a YAML file")
    parser.add_argument("without_dashes", metavar="COMMAND", nargs="*", help="after --: watch this command instead")
    parser.add_argument("--watch", metavar="TIME", type=duration,
                        help="watch the command for this long, then stop it (default: 10s)")  # fmt: skip
    parser.add_argument("--measure-cores", action="store_true", default=None,
                        help="measure which CPUs share a core, in 2 s, though it was measured before or this is no "
                        "virtual machine")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--for-issue", action="store_true",
                        help="print what a bug report needs: versions, threads, masks, quota, OpenMP, allocator, BLAS. "
                        "It contains no user, host or home folder name")  # fmt: skip
    engine_options.add(parser, engine="look inside")


def run(arguments: argparse.Namespace) -> int:
    if arguments.for_issue:
        for name in ("user_command", "watch", "measure_cores"):
            if vars(arguments)[name] is not None:
                raise InputError(no_effect(option(name), "--for-issue"))
        return _for_issue(arguments)
    if arguments.user_command is not None:
        if arguments.profile is not None:
            raise InputError(EitherOr("doctor", "a PROFILE"))
        options = engine_options.from_arguments(arguments).to_json()
        alone = {"engine": arguments.engine, "measure_cores": arguments.measure_cores}
        for name, value in {**alone, **options}.items():
            if value and value != "local":
                raise InputError(no_effect(option(name), COMMAND))
        findings = _of_command(arguments.user_command, arguments.watch or WATCH_S)
    elif arguments.without_dashes:
        raise InputError(CommandWithoutDashes(arguments.without_dashes[0]))
    elif arguments.watch is not None:
        raise InputError(OptionAlone("--watch", COMMAND))
    else:
        findings = _of_profile(arguments)
    if arguments.json:
        print(json.dumps([finding_document(finding) for finding in findings]))
    else:
        _show(findings)
    return FAILED if any(finding.severity == "stop" for finding in findings) else MEASURED


def _for_issue(arguments: argparse.Namespace) -> int:
    """Train for a moment as a plain command would, or under the profile, and print what was seen."""
    chosen = profile.load(arguments.profile or REFERENCE_PROFILE)
    engine, inherited = engine_options.engine(arguments)
    inspection = inspect(engine, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    environment = resolve(chosen, inspection)
    if arguments.profile is None and engine.name == "local":
        inherited = dict(os.environ)  # the report is about what the user's own programs have
    with machine_lock():
        outcome = engine.run(Launch(TRIAL, environment.variables, inherited, environment.prefix))
    if outcome.failure is not None:
        return end_with(DoctorTrialFailed(outcome.failure, _last_line(outcome, inherited)), FAILED, arguments.json)
    environ = environment.variables if arguments.profile else os.environ
    documented = catalogue.load()  # what another variable holds nobody knows: a token, perhaps
    variables = {
        name: value if name in documented else None for name, value in environ.items() if is_performance_variable(name)
    }
    page = issue.markdown(inspection, _evidence(outcome), variables, _secrets())
    print(json.dumps({"markdown": page}) if arguments.json else page, end="\n" if arguments.json else "")
    return MEASURED


def _evidence(outcome: Outcome) -> dict[str, object]:
    """Return the evidence that a worker printed. Raise InputError if it printed something else, as an image may."""
    document, problem = parse_document(outcome, {"evidence"})
    if document is None:
        raise InputError(problem or NoDocument())
    return dict(document["evidence"])


def _secrets() -> dict[str, str]:
    """Return what would tell who runs this and where, and what stands in its place."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # in a container nobody may have that number
        user = ""
    host = platform.node()
    placeholders = {str(Path.home()): "~", host: "HOST", host.partition(".")[0]: "HOST", user: "USER"}
    return {secret: instead for secret, instead in placeholders.items() if len(secret) > 1}


def _of_profile(arguments: argparse.Namespace) -> list[Finding]:
    chosen = profile.load(arguments.profile or REFERENCE_PROFILE)
    engine, inherited = engine_options.engine(arguments)
    kept = {name: inherited[name] for name in CHOOSING if name in inherited}
    look = partial(inspect, engine, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    inspection, unmeasured = _with_cores(look, bool(arguments.measure_cores))
    require_own_workloads(engine.describe(), inspection)
    environment = resolve(chosen, inspection)
    ignored = [
        found("would-be-ignored", About(problem.variable, problem.wrong), problem.fix)
        for problem in catalogue.check(
            environment.variables, catalogue.readers(inspection), catalogue.versions(inspection)
        )
    ]
    if ignored:
        return ignored  # some of these hang a library or bring it down
    with machine_lock():
        load = watch_machine(LOAD_S)
        on_gpus = bool(environment.gpus)  # it would not be in effect elsewhere
        trial = replace(TRIAL, options=Options(device=CUDA)) if on_gpus else TRIAL
        outcome = engine.run(
            Launch(trial, environment.variables, inherited, environment.prefix, passed_on=kept, gpus=on_gpus)
        )
    situation = Situation(
        inspection["facts"], inspection["fingerprint"], environment, None, load, inspection["libraries"],
        inspection.get("accelerator", {}), cores_measured="cores_measured" in inspection,
        kernel_cores=inspection.get("kernel_cores"),
    )  # fmt: skip
    if outcome.failure is not None:
        last = _last_line(outcome, inherited)
        printed = Printed(last) if last else NoOutput()
        failure = WorkerFailed(outcome.failure, cause_of(outcome.stderr_tail))
        failed = Finding("worker-failed", "stop", failure, printed, remedy("worker-failed"))
        return [failed, *diagnose(situation), *unmeasured]
    evidence = _evidence(outcome)
    expect = {key: value for key, value in environment.expect.items() if not key.startswith(OF_RANKS)}
    testable = replace(environment, expect=expect)
    checks = check(testable, evidence, kept, outcome.stderr_tail)
    unmet = [
        found("not-in-effect", Unmet(setting.key, shown(setting.expected), shown(setting.seen)))
        for setting in checks
        if not setting.holds
    ]
    unknown = [
        found("not-verified", About(setting.key, shown(setting.seen)), severity="note")
        for setting in checks
        if not setting.verified
    ]
    diagnosed = diagnose(replace(situation, evidence=evidence))
    return [*unmet, *diagnosed, *unmeasured, *unknown, *_unseen(arguments.profile, environment)]


def _with_cores(look: Callable[[], Inspection], is_requested: bool) -> tuple[Inspection, list[Finding]]:
    """Return an inspection with measured cores, and a finding if they could not be measured.

    They are measured where that is requested, and once on each virtual machine, whose kernel may not know them. Raise
    InputError for a request that no measurement can answer here.
    """
    cpus = usable_cpus()
    obstacle = obstacle_to_measuring(len(cpus), cpu_quota())
    if is_requested and obstacle is not None:
        raise InputError(obstacle)
    inspection, problem = look(), None
    may_be_wrong = inspection["fingerprint"]["hypervisor"] is not None and "cores_measured" not in inspection
    # a container may use CPUs that this process may not: measuring the others would not help it
    are_here = expand_cpu_list(inspection.get("cpus", "")) <= cpus
    if is_requested or (may_be_wrong and obstacle is None and are_here and "cpus" in inspection):
        with machine_lock():
            measured = measure(sorted(cpus))
        if isinstance(measured, Message):
            problem = measured
        else:
            try:
                measured_cores.keep(measured)
            except InputError as error:
                problem = error.message
            inspection = look()
    if (day := inspection.get("cores_measured")) is not None:
        facts = inspection["facts"]
        counted = CoresMeasured(facts["usable_cpus"], facts["physical_cores"], day)
        print(f"envkit: {text(counted)}", file=sys.stderr)
    return inspection, [] if problem is None else [found("cores-unmeasured", problem, severity="note")]


def _last_line(outcome: Outcome, inherited: Mapping[str, str]) -> str | None:
    """Return the last line that a worker printed to stderr, without secrets of the caller's, or None."""
    lines = outcome.stderr_tail.strip().splitlines()
    return private_values.of_printed(lines[-1], {}, inherited) if lines else None


def _unseen(named: str, environment: Environment) -> list[Finding]:
    """Return a finding about what the trial of one process could not show, if there is such a thing."""
    keys = tuple(key for key in environment.expect if key.startswith(OF_RANKS))
    measure = ("envkit", "bench", named, "--device", CUDA, "--nproc", "2")
    return [found("ranks-only", RanksOnly(keys), MeasureRanks(measure))] if keys else []


def _of_command(command: Sequence[str], seconds: float) -> list[Finding]:
    """Start the command, watch it, stop it if it still runs, and say what was found. Its output goes to stderr."""
    if not command:
        raise InputError(NoCommandToWatch())
    early_checks.require_program(UserCommand(tuple(command), str(Path.cwd())), on_this_machine=True)
    engine = engines.get_all(["local"], EngineOptions())["local"]
    inspection = inspect(engine, clean(os.environ, keep=())[0], torch=False)  # of the machine alone
    memory = memory_counters()
    with on_machine.evidence_folder(shared=False) as folder:
        hooked = on_machine.with_hook(os.environ, str(on_machine.HOOK), str(folder), ())
        variables = {**os.environ, **hooked, "ENVKIT_STEPS": LOOK}
        try:
            process = subprocess.Popen(
                command, env=variables, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
            )
        except OSError as error:
            raise InputError(CantStart(command[0], error.strerror or str(error))) from None
        try:
            evidence = watch_process(process.pid, seconds, folder)
            if evidence["usage"]["seconds"] < seconds:  # it has ended, and its last threads may be about to
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(ENDING_S)
        finally:
            ended = process.poll()
            end(process)
    lack = ran_out(memory, Path(command[0]).name, ended == -signal.SIGKILL, os.environ)
    if ended is None:
        print(f"envkit: {text(StoppedWatching(command[0], seconds))}", file=sys.stderr)
    elif ended != 0 and lack is None:
        raise InputError(WatchedFailed(command[0], ended, shm if (shm := shm_bytes()) and shm < SHM_BYTES else None))
    elif evidence["usage"]["seconds"] < SHORTEST_S:
        print(f"envkit: {text(WatchedShortly(command[0], evidence['usage']['seconds']))}", file=sys.stderr)
    symptoms = of_process(evidence["steady"]) if "steady" in evidence else None
    findings = diagnose(Situation(inspection["facts"], inspection["fingerprint"], None, evidence, symptoms=symptoms))
    if lack is None:
        return findings
    return [found("memory-ran-out", lack), *(finding for finding in findings if finding.code != "near-memory-limit")]


def _show(findings: Sequence[Finding]) -> None:
    out = terminal.console()
    for finding in findings:
        terminal.item(out, finding.severity, About(finding.code, finding.seen), COLOURS[finding.severity])
        terminal.item(out, "  why", finding.why)
        terminal.item(out, "  fix", finding.fix)
    if not findings:
        out.print(Text(NOTHING_FOUND))
