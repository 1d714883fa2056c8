"""``envkit exec PROFILE -- COMMAND...``: run anything under a profile, and check when it ends that it was in effect."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from envkit.checks import process_scan
from envkit.cli import engine_options
from envkit.cli.commands.help_messages import EXEC
from envkit.cli.execution import in_container, process_checks, resolving
from envkit.cli.execution.executables import NOT_EXECUTABLE, NOT_FOUND, Unusable
from envkit.cli.execution.launch import launch
from envkit.cli.execution.on_machine import Start, evidence_folder, local
from envkit.cli.execution.resolving import ResolvedProfile
from envkit.cli.parser import Parser
from envkit.common import atomic
from envkit.common.errors import FAILED, InputError
from envkit.engines import ENGINES
from envkit.messages import Message, Printed
from envkit.profiles.environment import Environment, of_caller
from envkit.rendering import text
from envkit.worker.cgroup import MemoryCounters, memory_counters, ran_out
from envkit.worker.child import end_by, signal_name
from envkit.worker.performance_variables import (
    LISTS,
    PRELOAD,
    is_needed,
    is_performance_variable,
    joined,
    says_where,
    settings,
    shared,
)

LIMITS = ("image", "sif", "sqsh", "cpus", "cpuset_cpus", "memory")  # mean nothing to the local engine
# What starts several processes of a training itself.
LAUNCHERS = ("torchrun", "torch.distributed.run", "mpirun", "mpiexec", "srun")
# How many processes a launcher has started, in the variables of each: torchrun, srun, Open MPI's mpirun.
SIZES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")
# A process that used less CPU time has imported torch, and hardly trained (seconds).
TRAINS_S = 3.0
SOON_S = 60.0  # a command that fails in this time may lack a variable
# Shells say nothing of a command that one of these ended: it was the user, or nobody reads what it prints any more.
SILENT = (signal.SIGINT, signal.SIGPIPE)


def add_arguments(parser: Parser) -> None:
    parser.usage = "envkit exec [options] PROFILE -- COMMAND..."
    parser.epilog = EXEC["statuses"]
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    parser.add_argument("without_dashes", metavar="COMMAND", nargs="*", help="after --: run this command")
    parser.add_argument("--engine", help=f"run it with: {', '.join(ENGINES)} (default: local)")
    parser.add_argument("--evidence", metavar="FILE", type=Path,
                        help="write what was observed in each process to FILE, as JSON")  # fmt: skip
    parser.add_argument("--no-check", action="store_true", help="do not verify the settings when the command ends")
    parser.add_argument("--keep-env", metavar="NAME", action="append", default=[],
                        help="pass this variable on although it can change the outcome; into a container, any "
                        "variable")  # fmt: skip
    parser.add_argument("--gpus", action="store_true", advanced=True,
                        help="give a container the machine's GPUs; a profile for GPUs does so itself")  # fmt: skip
    parser.add_argument("--allow-unknown", action="store_true", advanced=True,
                        help="allow the profile to set variables that no known program reads")  # fmt: skip
    engine_options.add(parser, engine_options.OF_COMMAND, engine=None)


def run(arguments: argparse.Namespace) -> int:
    command = _command(arguments)
    caller = dict(os.environ)
    for name in arguments.keep_env:
        if name not in caller:
            from envkit.bench.messages import VariableNotSet

            raise InputError(VariableNotSet(name))
    is_local = arguments.engine in (None, "local") and not any(getattr(arguments, name) for name in LIMITS)
    if is_local and arguments.gpus:
        raise InputError(_messages().GpusOnMachine())
    removed: list[str] = []
    with contextlib.nullcontext() if arguments.no_check else evidence_folder(not is_local) as folder:
        evidence = None if folder is None else str(folder)
        if is_local:
            engine, cleaned = engine_options.engine(arguments, command)
            resolved = resolving.resolve_inside(engine, cleaned, arguments.profile, arguments.allow_unknown)
            environment, inherited, removed = _inherited(caller, arguments.keep_env, resolved.environment)
            passed_on = {name: value for name, value in inherited.items() if is_performance_variable(name)}
            try:
                start = local(environment, command, inherited, evidence)
            except Unusable as reason:
                return _unusable(command[0], reason.message, reason.status)
        else:
            named = {name: caller[name] for name in arguments.keep_env}
            resolved, start, passed_on = in_container.prepare(arguments, command, named, evidence)
            environment = resolved.environment
        _warn(arguments, resolved, environment, command)
        processes: dict[int, process_scan.Seen] = {}
        begin = time.monotonic()

        def look(pid: int) -> None:
            if folder is not None:
                processes.update(process_scan.look(pid, command, folder, processes))

        watched = start.watched and not arguments.no_check
        moments = process_scan.moments() if watched else iter(())
        memory = memory_counters()
        try:
            ended = launch(start.executable, start.argv, start.variables, look, moments)
        except OSError as error:
            return _unusable(
                command[0], Printed(str(error.strerror)), NOT_FOUND if error.errno == 2 else NOT_EXECUTABLE
            )
        status = ended if ended >= 0 else 128 - ended
        _say_how_it_ended(
            command[0],
            ended,
            removed if time.monotonic() - begin < SOON_S else [],
            folder,
            environment.variables.get(PRELOAD, ""),
        )
        if ended:
            _say_lack_of_memory(command[0], ended, memory, start.variables)
        if folder is not None:
            status = _judge(arguments, environment, start, status, folder, processes, passed_on)
    if ended == -signal.SIGINT:  # so that a shell knows of Ctrl-C, and ends its loop or script
        return end_by(signal.SIGINT)
    return status


def _inherited(
    caller: Mapping[str, str], keep: Sequence[str], resolved: Environment
) -> tuple[Environment, dict[str, str], list[str]]:
    """Return the environment, the caller's variables that the command gets, and the names of others; print both.

    The environment is ``resolved``, joined with the caller's lists and the libraries of a LD_PRELOAD to keep.
    """
    variables = resolved.variables
    kept = {name: caller[name] for name in keep}
    kept.update({name: value for name, value in of_caller(caller, keep).items() if is_needed(name)})
    kept = shared(kept, [variables])
    environment = replace(resolved, variables=joined(variables, kept))
    stray = {name for name in caller if is_performance_variable(name) and not says_where(name)} - kept.keys()
    removed = sorted(stray - {name for name, value in variables.items() if _replaces_nothing(name, value)})
    passed_on = [name for name in kept if is_needed(name) and (name in LISTS or name not in variables)]
    if removed:
        _say(_messages().VariablesLeftOut(tuple(removed)))
    if passed_on:
        replaced = [key for name in passed_on for key in _replaced(name, caller[name], kept[name])]
        _say(_messages().VariablesPassedOn(tuple(sorted(passed_on)), tuple(replaced)))
    inherited = {name: kept.get(name, value) for name, value in caller.items() if name not in stray}
    return environment, inherited, removed


def _replaced(name: str, value: str, kept: str) -> list[str]:
    """Return the keys of a list's settings that the profile, or an earlier one, makes instead of the caller."""
    return [key for key in settings(name, value) if key not in settings(name, kept)] if name in LISTS else []


def _command(arguments: argparse.Namespace) -> list[str]:
    command: list[str] | None = arguments.user_command
    if command is None or arguments.without_dashes:
        from envkit.cli.commands.messages import DashesMissing

        command_line = arguments.without_dashes or ("python", "train.py")
        raise InputError(DashesMissing("exec", ("envkit", "exec", arguments.profile, "--", *command_line)))
    if not command:
        raise InputError(_messages().NothingAfterDashes(arguments.profile))
    if arguments.evidence is not None:
        if arguments.no_check:
            raise InputError(_messages().NoEvidence())
        if not arguments.evidence.absolute().parent.is_dir():
            raise InputError(_messages().NoPlaceForEvidence(str(arguments.evidence)))
    return command


def _messages() -> ModuleType:
    """Return the messages of this command, imported only if it has something to say: it must start fast."""
    return importlib.import_module("envkit.cli.commands.exec_messages")


def _judge(
    arguments: argparse.Namespace, environment: Environment, start: Start, status: int, folder: Path,
    processes: Mapping[int, process_scan.Seen], passed_on: Mapping[str, str],
) -> int:  # fmt: skip
    """Say whether the profile was in effect, and return the exit status."""
    from envkit.bench import private_values

    kept = {name: os.environ[name] for name in arguments.keep_env}
    testified: list[dict[str, object]] = []
    in_effect: bool | None
    judged_processes, left_documents = process_checks.read(folder, environment, passed_on)
    if judged_processes:
        in_effect = all(observed.holds for observed in judged_processes)
        lines: Sequence[Message] = process_checks.verdict(environment, judged_processes)
        testified = [observed.to_json() for observed in judged_processes]
    else:
        in_effect, lines = process_scan.verdict(environment, processes)
    lines = [*lines, *_findings(environment, [observed.evidence for observed in judged_processes])]
    unread = [left_documents.problem] if left_documents.problem else []
    for line in [*lines, *unread, *process_scan.lost(processes)]:
        _say(private_values.of_message(line, kept, os.environ))
    if arguments.evidence is not None:
        document = {
            "environment": environment.to_json(), "command": start.argv, "status": status, "in_effect": in_effect,
            "passed_on": sorted(passed_on), "processes": testified,  # by name: values may be secrets
            "seen_from_outside": [
                {
                    "pid": pid, "argv": process.argv, "lost": process.lost and process.lost.to_json(),
                    "wrong": [problem.to_json() for problem in process.wrong(environment)],
                }
                for pid, process in processes.items()
            ],
        }  # fmt: skip
        others = {name: value for name, value in os.environ.items() if name not in environment.variables}
        _write(arguments.evidence, private_values.hidden(document, kept, others))
    return FAILED if status == 0 and in_effect is False else status


def _findings(environment: Environment, evidence: Sequence[Mapping[str, object]]) -> list[Message]:
    """Return what is wrong with the variables, the number of threads or the CPUs of the process that trained."""
    from envkit.checks.doctor import cpu_use_findings, process_findings
    from envkit.checks.doctor.finding import Finder, Situation
    from envkit.checks.evidence import cpu_use
    from envkit.report.messages.advised import FindingWithFix

    if not evidence:
        return []
    trains, used = cpu_use_findings.trainer(evidence), [cpu_use(process) for process in evidence]
    situation = Situation({"usable_cpus": cpu_use(trains).get("cpus", 1)}, {}, environment, trains)
    checks: list[Finder] = [process_findings.children_on_one_core]
    if any({"threads_by", "cpus_by"} & use.keys() and use["cpu_s"] >= TRAINS_S for use in used):
        checks += cpu_use_findings.CPU_USE_CHECKS
    findings = [*process_findings.ignored_values(situation), *filter(None, (check(situation) for check in checks))]
    return [FindingWithFix(finding.seen, finding.why, finding.fix) for finding in findings]


def _say_lack_of_memory(program: str, ended: int, memory: MemoryCounters, variables: Mapping[str, str]) -> None:
    """Say that memory, or address space for the stacks of threads, ran out if this is why the command failed."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        from envkit.checks.process_limit import too_large_stacks

        if (limit := too_large_stacks(variables)) is not None:
            _say(limit)
    was_killed = ended == -signal.SIGKILL
    if (lack := ran_out(memory, program.rpartition("/")[2], was_killed, variables)) is not None:
        _say(lack)


def _write(path: Path, document: Mapping[str, object]) -> None:
    try:
        atomic.write(path, json.dumps(document, indent=1).encode())
    except InputError as error:  # the command has ended, and how it did counts
        _say(_messages().EvidenceUnwritable(error.message))


def _replaces_nothing(name: str, value: str) -> bool:
    """Return whether a profile's variable may replace the caller's in silence: not if that loses a part of a list."""
    return name not in (PRELOAD, *LISTS) or os.environ.get(name, "") in ("", value)


def _say_how_it_ended(command: str, ended: int, removed: Sequence[str], folder: Path | None, preload: str) -> None:
    """Say which signal ended the command, and what was ``removed`` of the variables if it failed soon."""
    if ended < 0 and -ended not in SILENT:
        meaning = signal.strsignal(-ended) or "unknown"
        _say(_messages().EndedBySignal(command, signal_name(-ended), meaning))
    if ended in (-signal.SIGABRT, 128 + signal.SIGABRT) and folder is not None:
        from envkit.worker.user_command import second_openmp

        if (second := second_openmp.second_runtime(folder, preload)) is not None:
            _say(second)
    elif ended > 0 and removed:
        option = ("--keep-env", removed[0] if len(removed) == 1 else "NAME")
        _say(_messages().FailedWithout(command, ended, tuple(removed), option))


def _warn(
    arguments: argparse.Namespace, resolved: ResolvedProfile, environment: Environment, command: Sequence[str]
) -> None:
    """Print why the profile may not help this command, and which kept variables it overrules."""
    if warning := resolving.other_machine(resolved.profile.name, resolved.profile.path, resolved.inspection):
        _say(warning)
    _say_ranks(arguments.profile, environment.ranks, command)
    _say_overruled(arguments.keep_env, environment.variables)


def _say_overruled(kept: Sequence[str], variables: Mapping[str, str]) -> None:
    for name in kept:
        if name not in (PRELOAD, *LISTS) and variables.get(name, os.environ[name]) != os.environ[name]:
            _say(_messages().KeptInVain(name, variables[name]))


def _say_ranks(profile: str, ranks: int, command: Sequence[str]) -> None:
    """Warn if a profile is for several ranks and the command is one process, which leaves most CPUs idle."""
    several = any(word.rpartition("/")[2] in LAUNCHERS for word in command)
    if ranks == 1 or several or any(os.environ.get(name, "1") != "1" for name in SIZES):
        return
    instead = ("envkit", "exec", profile, "--", "torchrun", "--nproc-per-node", str(ranks), "train.py")
    _say(_messages().OneOfSeveralRanks(profile, ranks, instead))


def _unusable(command: str, why: Message, status: int) -> int:
    from envkit.common.messages import About

    _say(About(command, why))
    return status


def _say(line: Message) -> None:
    if sys.stderr:  # None where it was closed
        with contextlib.suppress(OSError):  # nobody reads it any more
            indent = "  " if isinstance(line, process_checks.DETAILS) else ""
            print(f"envkit: {indent}{text(line)}", file=sys.stderr)
