"""Answers like ``python -m envkit.worker``, at once and as a JSON file tells it to.

``main`` is started with the arguments CONFIG PATH -, and reads its request from stdin.

CONFIG has, for each value that a profile gives to the variable SIMULATED (``baseline`` where it gives none), what that
profile's workers do, for that value with `` warming`` behind it what those do that are started unmeasured, and for
``reference-kernel`` what that worker does; on ranks, on a part of the CPUs, or several at once, it has that behind it
(`` on 2 ranks``, `` on 1/2``, `` x 2``). See ``Simulation`` in simulation.py. It also has how the names of performance
variables begin (``prefixes``). ``starts.jsonl`` in the same folder logs each start.

Tests start thousands of these: what takes long to be imported, and is not always needed, is imported where it is.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping

PR_SET_PDEATHSIG = 1
DIGESTS = {"code": "c" * 64, "data": "d" * 64, "initial_weights": "e" * 64}
# What a document has as it was planted.
PASSED_ON = ("modes", "gpu", "backend", "exchange", "observed", "writes", "peak_memory_bytes")


def located(command: str, search: str) -> str | None:
    """Return where the folders of ``search`` have a command, as shutil.which does, whose import takes longer."""
    for folder in search.split(os.pathsep):
        path = os.path.join(folder, command)  # noqa: PTH118
        if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112
            return path
    return None


def inspection(commands: list[str], replaced: dict, search: str | None = None) -> dict:
    """The document of ``inspect``, with some fields replaced.

    It looks for ``commands`` as the real one does, in the folders of ``search`` or of this process's PATH.
    """
    search = search or os.environ.get("PATH") or os.defpath
    libraries = {"jemalloc": {"path": "/usr/lib/libjemalloc.so.2", "sha256": "0" * 64}}
    return {
        "facts": {
            "usable_cpus": 4, "physical_cores": 2, "numa_nodes": 1, "affinity_cpus": 4, "online_cpus": 4,
            "cpu_quota": None, "smt": True, "cpu_vendor": "AuthenticAMD",
        },
        "memory_limit": None,
        "groups_seen": True,
        "fingerprint": {
            "cpu_model": "Simulated CPU", "cpu_numbers": "model 1", "architecture": "x86_64", "microcode": None,
            "caches": {"L1 Data": "32K"}, "memory_bytes": 2**33, "kernel": "6.1.0",
            "distribution": "Simulated Linux 1", "libc": "glibc 2.36",
            "thp_enabled": "madvise", "thp_defrag": "madvise", "governor": None, "frequency_driver": None,
            "hypervisor": None, "isa": ["avx2"], "aslr": "full",
        },
        "python": {"version": "3.11.7", "executable": "/sim/bin/python", "prefix": "/sim"},
        "packages": {"torch": "2.13.0", "numpy": "2.4.6", "intel-openmp": None, "mkl": None},
        "unverified_packages": None,
        "libraries": libraries,
        "library_folders": ["/sim/lib", "/usr/lib"],
        "providers": {},
        "commands": {command: located(command, search) for command in commands},
        "python_headers": True,
        **replaced,
    }  # fmt: skip


def launched(work: dict) -> tuple[dict, str]:
    """The work of one process, and what it runs on: `` on 2 ranks``, `` on 1/2`` of the CPUs, or several times at once
    (`` x 2``); or nothing."""
    if work["kind"] not in ("ranks", "instances"):
        return work, ""
    if work["kind"] == "instances":
        return work["training"], f" x {work['number']}"
    if work["cpu_shares"] > 1:
        return work["training"], f" on 1/{work['cpu_shares']}"
    return work["training"], f" on {work['number'] * work['nodes']} ranks"


def training_of(work: dict) -> dict:
    """How a workload is trained, also where that is broken down; of a user's command nothing is known."""
    return work.get("training", work)


def of_ranks(count: int, behaviour: dict, evidence: dict) -> dict:
    """What a sample of several ranks has besides; ``of_rank`` is, by its number, what one does otherwise."""
    communication = behaviour.get("communication", {"seconds": 0.002, "share": 0.1})
    ranks = of_each("rank", count, behaviour, evidence)
    for one in ranks:
        its = behaviour.get("of_rank", {}).get(str(one["rank"]), {})
        one["communication"] = its.get("communication", communication)
    return {"ranks": ranks, "communication": communication}


def of_each(kind: str, count: int, behaviour: dict, evidence: dict) -> list[dict]:
    """What is told of each rank or instance; ``of_KIND`` is, by its number, what one does otherwise."""
    found = []
    for number in range(count):
        other = behaviour.get(f"of_{kind}", {}).get(str(number), {})
        cpus = other.get("cpus", [2 * number, 2 * number + 1])
        its = {**evidence, "threads": {**evidence["threads"], "masks": {",".join(map(str, cpus)): 2}}}
        seen = {probe: {**had, **other.get("evidence", {}).get(probe, {})} for probe, had in its.items()}
        found.append({kind: number, "node": "here", "cpus": cpus, "evidence": seen})
    return found


def digests(work: dict) -> dict[str, str]:
    """How large batches are is a part of the code's."""
    scale = training_of(work)["options"]["scale"]
    return DIGESTS if scale == 1 else {**DIGESTS, "code": str(scale).rjust(64, "c")}


def loading(workload: str, behaviour: dict) -> dict:
    """What a sample has besides where epochs of the loader end; ``loader`` in ``behaviour`` is what is seen instead."""
    if not workload.startswith("loader-"):
        return {}
    from envkit.worker.workloads import loader_epochs

    settings = loader_epochs.settings_of(workload)
    if settings is None:
        return {}
    seen = {
        "start": settings.start, "persistent": settings.persistent, "epochs": 5,
        "steps_per_epoch": settings.epoch_steps,
    }  # fmt: skip
    return {"loader": {**seen, **behaviour.get("loader", {})}}


def performance_prefixes() -> tuple[str, ...]:
    """Return how the names of performance variables begin."""
    from envkit.worker.performance_variables import PREFIXES

    return PREFIXES


def learning_curve(training: dict, behaviour: dict, learnt: dict | None, seconds: float) -> list[dict]:
    """What a full training that takes ``seconds`` tells of each epoch, the last of which has ``learnt`` so much.

    ``figures`` are what the tests find instead, one epoch after the other; it ends when what it was to reach is there.
    """
    epochs = training["full"]["epochs"]
    figures = behaviour.get("figures") or [
        {name: value * (number / epochs) for name, value in (learnt or {}).items()} for number in range(1, epochs + 1)
    ]
    curve = [
        {"seconds": seconds / epochs, "loss": 2.3 - number / 10, "quality": one or None, "test_s": 0.25}
        for number, one in enumerate(figures[:epochs])
    ]
    if training["full"]["until"] is None:
        return curve
    from envkit.worker.measure.quality_target import parse

    target = parse(training["full"]["until"])
    return curve[: target.reached_after(target.reading(one["loss"], one["quality"]) for one in curve)]


def sample(work: dict, behaviour: dict, nth: int, environment: Mapping[str, str]) -> dict:
    """The document of one sample. ``seconds`` are the nth of those given, beginning again after the last."""
    work, where = launched(work)
    training = training_of(work)
    own, workload = work["kind"] == "command", training.get("workload", "")
    full = not own and training["full"] is not None
    steps = behaviour.get("full_steps", 3) if full or own else training["steps"]
    warmup_steps = 0 if own else training["warmup_steps"]
    seconds = behaviour["seconds"][nth % len(behaviour["seconds"])]
    preload = [entry for entry in environment.get("LD_PRELOAD", "").split(":") if entry]
    prefixes = tuple(behaviour.get("prefixes") or performance_prefixes())
    learnt = behaviour.get("quality", {"accuracy": 0.84} if full else None)
    curve = learning_curve(training, behaviour, learnt, seconds) if full else []
    if curve:
        seconds, learnt = seconds * len(curve) / training["full"]["epochs"], curve[-1]["quality"]
    evidence = {
        "openmp": {"runtime": "gnu", "max_threads": 2, "proc_bind": "false", "settings": {}},
        "malloc": {"allocator": "jemalloc" if preload else "glibc", "settings": {}},
        "threads": {"count": 2, "masks": {"0-3": 2}, "pinned_cpus": 0},
        "torch": {"version": "2.13.0", "num_threads": 2, "interop_threads": 2},
        "variables": {
            "sensitive": {name: value for name, value in sorted(environment.items()) if name.startswith(prefixes)},
            "preloaded": dict.fromkeys(preload, "mapped"),
        },
    }
    if where and "OMP_NUM_THREADS" in environment:  # one rank on each node has all CPUs of it
        evidence["openmp"]["max_threads"] = int(environment["OMP_NUM_THREADS"])
    for probe, found in behaviour.get("evidence", {}).items():
        evidence[probe] = evidence.get(probe, {}) | found
    cpus = 4 // int(where.removeprefix(" on 1/")) if where.startswith(" on 1/") else 4
    together = of_ranks(int(where.split()[1]), behaviour, evidence) if where.endswith("ranks") else {}
    at_once = int(where.removeprefix(" x ")) if where.startswith(" x ") else 1
    if at_once > 1:
        together = {"instances": of_each("instance", at_once, behaviour, evidence)}
    loaded = loading(workload, behaviour)
    epoch, more = loaded.get("loader", {}).get("steps_per_epoch"), behaviour.get("begin_s", 0.0)
    paces = [
        (3 if step < behaviour.get("slow_steps", 0) else 1, 0 if not epoch or (warmup_steps + step) % epoch else more)
        for step in range(steps)
    ]
    given = behaviour.get("losses_in_turn") or [behaviour.get("losses")]
    losses = given[nth % len(given)] or ([] if own else [2.3 - step / 1000 for step in range(steps)])
    return {
        "seconds": seconds,
        "step_s": [seconds / steps * slower + more for slower, more in paces],
        "warmup_step_s": [seconds / steps] * warmup_steps,
        "losses": losses,
        "images_per_step": (
            None if own else at_once * behaviour.get("images_per_step", 64 * training["options"]["scale"])
        ),
        "unit": behaviour.get("unit", "images"),
        "quality": learnt if full or training.get("tests") else None,
        **({"curve": curve} if curve else {}),
        "usage": {
            "machine_busy_s": 1.25 * seconds, "machine_steal_s": 0.0, "machine_swapped_bytes": 0,
            "user_s": seconds, "system_s": seconds / 4, "minor_faults": 100 * steps, "major_faults": 0,
            "voluntary_switches": 5, "involuntary_switches": 5, "throttled_s": behaviour.get("throttled_s", 0.0),
            "worker_cpus": cpus, "worker_cpus_busy_s": 1.25 * seconds, "worker_cpus_steal_s": 0.0,
            "throttle_events": None, "cpu_pressure_s": 0.0, "frequency_mhz": None, **behaviour.get("usage", {}),
        },
        "peak_memory_bytes": 2**29,
        "digests": {
            **({"command": "a" * 64} if own else digests(work)), **behaviour.get("digests", {}),
            **behaviour.get("digests_of", {}).get(workload, {}),
        },
        "evidence": {**evidence, "seconds": 0.01},
        **{name: behaviour[name] for name in PASSED_ON if name in behaviour},
        **together,
        **loaded,
        **({"other_processes": behaviour["other_processes"]} if "other_processes" in behaviour else {}),
    }  # fmt: skip


def profiled(work: dict, behaviour: dict, nth: int, environment: Mapping[str, str]) -> dict:
    """The document of ``operators``: the profiler adds a tenth, and ``operators`` are shares of a step's time.

    The forward pass, where it is asked for, takes 0.8 of that.
    """
    document = sample(work, behaviour, nth, environment)
    steps = [1.1 * second for second in document["step_s"]]
    shares = behaviour.get("operators", {"aten::mm": 0.5, "aten::add_": 0.25})
    found = [
        {"name": name, "calls": 2 * len(steps), "self_s": share * sum(steps), "allocated_bytes": 4096 * len(steps)}
        for name, share in shares.items()
    ]
    forward = {"forward_s": 0.8 * sum(steps)} if work["forward"] else {}
    return {**document, "profiled_step_s": steps, "operators": found, **forward}


def phased(work: dict, behaviour: dict, nth: int, environment: Mapping[str, str]) -> dict:
    """The document of ``phases``: these are shares of a step's time, and so are those of a ``batch`` if it has some."""
    document = sample(work, behaviour, nth, environment)
    shares = behaviour.get("phases", {"forward": 0.25, "backward": 0.5, "other": 0.25})
    batch = behaviour.get("batch")
    if batch is not None:
        parts = {name: [share * second for second in document["step_s"]] for name, share in batch["parts"].items()}
        batch = {**batch, "parts": parts}
    phases = {name: [share * second for second in document["step_s"]] for name, share in shares.items()}
    return {**document, "phases": phases, "batch": batch}


def misbehave(behaviour: dict) -> None:
    """What stands under ``does``: hang, die by a signal, exit with a status, or print something else."""
    print(behaviour.get("stderr", "simulated trouble"), file=sys.stderr, flush=True)
    match behaviour["does"]:
        case "hang":
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            time.sleep(600)
        case "signal":
            os.kill(os.getpid(), behaviour["signal"])
        case "exit":
            sys.exit(behaviour["status"])
        case "print":
            print(behaviour["text"])
            sys.exit(behaviour.get("status", 0))


def name_of(work: dict, environment: Mapping[str, str]) -> str:
    """Under which name CONFIG says what this worker does."""
    work, where = launched(work)
    if work["kind"] not in ("train", "operators", "phases", "command"):
        return str(work["kind"])
    name = environment.get("SIMULATED", "baseline") + where
    return name if is_measured(work) else f"{name} warming"


def is_measured(work: dict) -> bool:
    """Whether it is no first start, of which ranks say nothing of what they say to each other."""
    return bool(training_of(launched(work)[0]).get("profiles_ranks", True))


def named(environment: Mapping[str, str], config: dict) -> Mapping[str, str]:
    """The environment, with SIMULATED where a setting stands for that name."""
    for setting, name in config.get("named", {}).items():
        variable, _, value = setting.partition("=")
        if environment.get(variable) == value:
            return {**environment, "SIMULATED": name}
    return environment


def answer(name: str, work: dict, config: dict, nth: int, environment: Mapping[str, str]) -> dict:
    """The document that the worker prints as its nth answer, the first being 0."""
    behaviour = config["workers"].get(name, {})
    if name == "inspect":
        return inspection(work["commands"], config.get("inspect", {}), environment.get("PATH"))
    if name == "reference-kernel":
        seconds = behaviour.get("seconds", [0.1])
        return {"seconds": seconds[nth % len(seconds)], "digest": behaviour.get("digest", "f" * 64)}
    answers = {"operators": profiled, "phases": phased}.get(work["kind"], sample)
    return answers(work, {"seconds": [1.0], "prefixes": config.get("prefixes"), **behaviour}, nth, environment)


def log_start(
    log: str | os.PathLike[str], name: str, work: dict, environment: Mapping[str, str], parent: int | None = None
) -> int:
    """Note the start; returns how many of that name there were before."""
    start = {"name": name, "pid": os.getpid(), "work": work, "parent": parent, "environment": dict(environment)}
    line = json.dumps(start) + "\n"
    alike = line[: line.index('"pid": ')]  # how each line of that name begins; to parse them all would take long
    with open(log, "a+", encoding="utf-8") as file:  # noqa: PTH123
        file.seek(0)
        earlier = file.read()
        file.write(line)
    return f"\n{earlier}".count(f"\n{alike}")


def main() -> None:
    folder = sys.argv[1].rpartition("/")[0]
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        config = json.load(file)
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        request = json.loads(stdin.readline())
    work = request["work"]
    if request["waits"]:
        from envkit.worker.child import die_with
        from envkit.worker.measure.turn import own_stdin, wait

        if request["parent"] is not None and not die_with(request["parent"], signal.SIGKILL):  # or it would wait on
            sys.exit(1)
        if not wait(own_stdin(), document=1):
            sys.exit(1)
    name = name_of(work, named(os.environ, config))
    nth = log_start(f"{folder}/starts.jsonl", name, work, os.environ, request["parent"])
    behaviour = config["workers"].get(name, {})
    time.sleep(behaviour.get("delay", 0))
    if "does" in behaviour and nth >= behaviour.get("from", 0):
        misbehave(behaviour)
    if os.environ.get("ENVKIT_NODE_RANK", "0") == "0":
        print(json.dumps(answer(name, work, config, nth, os.environ)))
