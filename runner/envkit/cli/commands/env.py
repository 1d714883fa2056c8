"""``envkit env PROFILE``: what to paste so that a shell, a container, a batch job, an editor or a notebook sets it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import replace

from envkit.cli import engine_options
from envkit.cli.commands import profile_messages as messages
from envkit.cli.execution import resolving
from envkit.cli.execution.resolving import ResolvedProfile
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED, InputError
from envkit.engines import CONTAINERS, container
from envkit.engines.base import PACKAGE
from envkit.messages import Message
from envkit.profiles import profile
from envkit.profiles.environment import of_caller
from envkit.profiles.formats import FORMATS, docker_run
from envkit.profiles.formats.resolved import Resolved
from envkit.profiles.profile import VARIABLE_NAME
from envkit.rendering import text
from envkit.worker.performance_variables import LISTS, PRELOAD, is_withheld, joined, own_settings, settings, shared

SHORT_DIGEST = len("sha256:") + 12
NOT_OCI = ("local", "apptainer", "enroot")


def add_arguments(parser: Parser) -> None:
    uses = "; ".join(f"{name}: {format.use}" for name, format in FORMATS.items()).replace("%", "%%")
    parser.add_argument(
        "--format", metavar="FORMAT", choices=FORMATS, default="shell", help=f"write {uses} (default: shell)"
    )
    parser.add_argument("--json", action="store_true", help="print the text and its notes as JSON")
    resolving.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    chosen = FORMATS[arguments.format]
    if chosen.inside and arguments.engine in (None, "local"):
        named = profile.load(arguments.profile)
        if needs := (*named.preload, *named.prefix[:1]):
            raise InputError(messages.NeedsPathsInImage(named.name, needs, arguments.format))
    resolution = resolving.from_options(arguments)
    if joins := resolution.engine.name == "local" and not (chosen.inside or chosen.either):
        resolution = _joined(resolution)
    environment = resolution.environment
    limits = tuple(container.limits(engine_options.from_arguments(arguments)))
    stray = _stray(resolution) if chosen.cleans and resolution.engine.name == "local" else ()
    resolved = _resolved(resolution, limits, stray)
    written = chosen.render(resolved)
    try:
        written.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError as error:
        characters = repr(written[error.start : error.end])
        raise InputError(messages.NotInEncoding(environment.profile, characters, error.encoding)) from None
    allowing = docker_run.ALLOWING if chosen.either and resolution.engine.name not in NOT_OCI else chosen.allowing
    notes = [*resolved.notes(chosen.starts, chosen.asking, allowing), *chosen.missing(resolved)]
    notes += map(text, [*(_of_lists(resolution) if joins else ()), *_own_notes(arguments, resolution, resolved)])
    if arguments.json:
        print(json.dumps({"format": arguments.format, "text": written, "notes": notes}))
        return MEASURED
    sys.stdout.write(written)
    for note in notes:  # eval and a redirection hide what stands in comments, and some formats have none
        print(f"envkit: note: {note}", file=sys.stderr)
    return MEASURED


def _own_notes(arguments: argparse.Namespace, resolution: ResolvedProfile, resolved: Resolved) -> Iterator[Message]:
    """Yield what the user must know of the text: what it replaces and leaves out, and where its paths exist."""
    chosen, environment = FORMATS[arguments.format], resolution.environment
    if resolved.stray:
        yield messages.Unset(resolved.stray)
    theirs = os.environ.get(PRELOAD, "")
    if chosen.cleans and environment.preload and {*theirs.split(":")} - {"", *environment.preload.values()}:
        yield messages.PreloadReplaced(PRELOAD, theirs)
    if arguments.memory and arguments.format != "docker":
        yield messages.MemoryNotWritten(arguments.memory)
    if environment.preload and not chosen.inside and resolution.engine.name != "local":
        yield messages.PathsInImage(resolved.place)
    elif environment.preload and chosen.either:
        yield messages.PathsOfMachine()


def _joined(resolution: ResolvedProfile) -> ResolvedProfile:
    """Add the settings that this shell has in the profile's lists, which the text would replace."""
    variables = resolution.environment.variables
    lists = {name: value for name, value in of_caller(os.environ).items() if name in LISTS}
    return replace(
        resolution, environment=replace(resolution.environment, variables=joined(variables, shared(lists, [variables])))
    )


def _of_lists(resolution: ResolvedProfile) -> Iterator[Message]:
    """Yield what became of the settings that this shell has in the profile's lists."""
    variables = resolution.environment.variables
    for name in (list_name for list_name in LISTS if list_name in variables and list_name in os.environ):
        theirs, written = settings(name, os.environ[name]), settings(name, variables[name])
        others = own_settings(name, os.environ[name], [resolution.profile.env])
        joined_keys = tuple(key for key in others if key in written)
        replaced = tuple(key for key, pair in theirs.items() if written.get(key) != pair)
        if joined_keys or replaced:
            yield messages.ListJoined(name, joined_keys, replaced)


def _stray(resolution: ResolvedProfile) -> tuple[str, ...]:
    """Return the variables of this shell that could contradict the profile, if a shell can name them."""
    lists = of_caller(os.environ)
    names = (name for name in os.environ if is_withheld(name) or (name in LISTS and name not in lists))
    return tuple(
        sorted(name for name in names if VARIABLE_NAME.match(name) and name not in resolution.environment.variables)
    )


def _resolved(resolution: ResolvedProfile, limits: tuple[str, ...], stray: tuple[str, ...]) -> Resolved:
    described, facts, environment = resolution.engine.describe(), resolution.inspection["facts"], resolution.environment
    digest = f" {described['digest'][:SHORT_DIGEST]}" if described.get("digest") else ""
    inside = f"{container.CODE}/"
    mounted = [path for path in environment.preload.values() if path.startswith(inside)]
    kind = CONTAINERS[described["name"] if described["name"] not in NOT_OCI else "docker"]
    return Resolved(
        environment=environment,
        host=f"{platform.node()} ({resolution.inspection['fingerprint']['cpu_model']})",
        place=f"{described['name']} {described['image']}{digest}",
        image=None if described["name"] in NOT_OCI else described["image"],
        python=described["image"] if described["name"] == "local" else "python",
        package_folders=tuple(resolution.inspection.get("package_folders", ())) if described["name"] == "local" else (),
        sqsh=described["image"] if described["name"] == "enroot" else None,
        usable_cpus=facts["usable_cpus"],
        physical_cores=facts["physical_cores"],
        smt=bool(facts["smt"]),
        cores_measured=resolution.inspection.get("cores_measured"),
        limits=limits,
        asking=kind.gpus if environment.gpus else (),
        mount=f"{PACKAGE}:{container.CODE}" if mounted else None,
        stray=stray,
        beside=_beside(resolution),
    )


def _beside(resolution: ResolvedProfile) -> int:
    """The CPUs that a job needs whose threads are only a part of what runs on them; 0 where they are all.

    With GPUs, their part of the CPUs; where several NUMA nodes are needed, all that could be used.
    """
    facts, gpus = resolution.inspection["facts"], resolution.environment.gpus
    if gpus:
        return max(1, int(facts["usable_cpus"]) * gpus // int(facts["gpus"]))
    return int(facts["usable_cpus"]) if "numa_nodes" in resolution.profile.needs else 0
