"""Facts of a machine for a bug report, as Markdown that is safe to paste.

Only fields that the messages here have are printed, libraries by their file names alone. Names of this user, this host
and the home folder are replaced wherever they occur all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from envkit.engines.measurement import Evidence, probe
from envkit.messages import Message
from envkit.profiles.inspection import Inspection
from envkit.rendering import text
from envkit.report.messages import issue as messages

GIB = 2**30
OF_SYSTEM = ("distribution", "kernel", "libc", "architecture")
# What a value must look like to be printed: a number, a word, a list of CPUs.
PLAIN = re.compile(r"[\w.,:;=+%-]{1,80}")


def markdown(
    inspection: Inspection,
    evidence: Evidence,
    variables: Mapping[str, str | None],
    secrets: Mapping[str, str],
) -> str:
    """Return a fenced block.

    ``evidence`` is of a process that trained. ``variables`` are those that can change how fast training runs, with None
    for a value that must not be shown. ``secrets`` are texts to replace, with their replacements.
    """
    rows = [*_machine(inspection), *_process(evidence)]
    lines = [f"{label:<14}{text(said) if isinstance(said, Message) else said}" for label, said in rows]
    shown = [(name, _shown(name, value)) for name, value in sorted(variables.items())]
    lines += [f"{name}={messages.HIDDEN if value is None else value}" for name, value in shown]
    block = "".join(f"{line}\n" for line in lines)
    for secret in sorted(secrets, key=len, reverse=True):  # a home folder has the user's name in it
        block = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", secrets[secret], block)
    return f"```text\n{block}```\n"


def _machine(inspection: Inspection) -> list[tuple[str, Message | str]]:
    facts, seen, packages = inspection["facts"], inspection["fingerprint"], inspection["packages"]
    accelerator, limit = inspection.get("accelerator"), inspection.get("memory_limit")
    quota = messages.NoQuota() if facts["cpu_quota"] is None else messages.Quota(facts["cpu_quota"])
    cpus = (facts["usable_cpus"], facts["online_cpus"], quota, facts["physical_cores"])
    smt = (messages.SMT[bool(facts["smt"])], facts["numa_nodes"])
    devices = accelerator["devices"] if accelerator else []
    gpus = tuple(str(device.get("name", messages.NOT_SEEN)) for device in devices)
    pages = (seen["thp_enabled"], seen["thp_defrag"])
    found: list[tuple[str, Message | str]] = [
        ("torch", messages.Versions(packages["torch"], inspection["python"]["version"], packages["numpy"])),
        ("CPU", messages.Processor(seen["cpu_model"], seen["cpu_numbers"], tuple(seen["isa"]))),
        ("CPUs", messages.Cpus(*cpus, *smt, inspection.get("cores_measured"))),
        ("memory", messages.MachineMemory((seen["memory_bytes"] or 0) / GIB, *pages, limit / GIB if limit else None)),
        (
            "system",
            messages.MachineSystem(seen["distribution"], seen["kernel"], seen["libc"], seen["architecture"]),
        ),
        ("frequency", messages.Frequency(seen["governor"] or messages.NOT_SEEN, seen["hypervisor"] or "none")),
    ]
    if accelerator and gpus:
        found.append(("GPUs", messages.Gpus(gpus, accelerator["driver"], accelerator["torch_cuda"])))
    return found


def _process(evidence: Evidence) -> list[tuple[str, Message | str]]:
    torch, threads, openmp, malloc = (probe(evidence, name) for name in ("torch", "threads", "openmp", "malloc"))
    mkl, onednn, limits = (probe(evidence, name) for name in ("mkl", "onednn", "limits"))
    by_mask = threads["masks"]
    assert isinstance(by_mask, dict), "threads are counted by the CPUs that they may run on"
    masks = tuple(messages.Mask(number, cpus) for cpus, number in by_mask.items())
    runtime = (openmp["runtime"], _names(openmp["mapped"]), openmp["max_threads"])
    found: list[tuple[str, Message | str]] = [
        ("threads", messages.Threads(torch["num_threads"], torch["interop_threads"], threads["count"])),
        ("masks", messages.Masks(masks, threads["started_on"])),
        ("limits", messages.Limits(limits["throttled_s"], limits["seccomp"])),
        ("OpenMP", messages.Openmp(*runtime, openmp["proc_bind"], openmp["places"], openmp["wait_policy"])),
        ("allocator", messages.Allocator(malloc["allocator"], _names([malloc["library"]]))),
        ("preloads", _names(probe(evidence, "variables")["preloaded"]) or "none"),
    ]
    if mkl.get("available"):
        found.append(("MKL", messages.Mkl(mkl["version"], mkl["max_threads"], mkl["code"], mkl["dispatch"])))
    if onednn.get("available"):
        found.append(("oneDNN", messages.Onednn(onednn["isa"], onednn["fpmath"])))
    return [*found, ("capability", str(torch["cpu_capability"]))]


def _names(paths: object) -> str:
    """Return the file names of a list of paths, some of which may be missing; nothing of another form."""
    return ", ".join(PurePath(path).name for path in paths if path) if isinstance(paths, list) else ""


def _shown(name: str, value: str | None) -> str | None:
    """Return a value if it says something of speed and nothing of a user; None if it is hidden."""
    if value is None or name != "LD_PRELOAD":
        return value if value and PLAIN.fullmatch(value) else None
    return _names(re.split(r"[ :]+", value))
