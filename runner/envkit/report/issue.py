"""What a bug report needs to know of a machine, as Markdown that is safe to paste.

Only fields that are named here are printed, libraries by their file names alone. Names of this user, this host and the
home folder are replaced wherever they occur all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

# What a value must look like to be printed: a number, a word, a list of CPUs.
PLAIN = re.compile(r"[\w.,:;=+%-]{1,80}")
HIDDEN = "(set, not shown)"
NOT_SEEN = "not seen"


def markdown(
    inspection: Mapping[str, Any],
    evidence: Mapping[str, Any],
    variables: Mapping[str, str | None],
    secrets: Mapping[str, str],
) -> str:
    """Return a fenced block.

    ``evidence`` is of a process that trained, ``variables`` are those that can change how fast training runs, with None
    for a value not to show, and ``secrets`` are texts to replace, with what stands in their places.
    """
    rows = [*_machine(inspection), *_process(evidence), *_libraries(evidence)]
    lines = [f"{label:<14}{value}" for label, value in rows]
    lines += [f"{name}={_shown(name, value)}" for name, value in sorted(variables.items())]
    text = "\n".join(lines)
    for secret in sorted(secrets, key=len, reverse=True):  # a home folder has the user's name in it
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", secrets[secret], text)
    return f"```text\n{text}\n```\n"


def _machine(inspection: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts, seen, packages = inspection["facts"], inspection["fingerprint"], inspection["packages"]
    quota = "no quota" if facts["cpu_quota"] is None else f"quota {facts['cpu_quota']} CPUs"
    limit = inspection.get("memory_limit")
    memory = f"{seen['memory_bytes'] / 2**30:.1f} GiB" + (f", limit {limit / 2**30:.1f} GiB" if limit else "")
    cores = f"{facts['physical_cores']} cores, SMT {'on' if facts['smt'] else 'off'}, NUMA nodes {facts['numa_nodes']}"
    return [
        ("torch", f"{packages['torch']}, Python {inspection['python']['version']}, numpy {packages['numpy']}"),
        ("CPU", f"{seen['cpu_model']} ({seen['cpu_numbers']}), {', '.join(seen['isa'])}"),
        ("CPUs", f"{facts['usable_cpus']} usable of {facts['online_cpus']} online, {quota}, {cores}"),
        ("memory", f"{memory}, huge pages {seen['thp_enabled']}, defrag {seen['thp_defrag']}"),
        ("system", f"{seen['distribution']}, kernel {seen['kernel']}, {seen['libc']}, {seen['architecture']}"),
        ("frequency", f"governor {seen['governor'] or NOT_SEEN}, hypervisor {seen['hypervisor'] or 'none'}"),
        *_accelerator(inspection.get("accelerator") or {}),
    ]


def _accelerator(seen: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not seen.get("devices"):
        return []
    names = ", ".join(str(one.get("name", NOT_SEEN)) for one in seen["devices"])
    return [("GPUs", f"{names}; driver {seen['driver']}, CUDA {seen['torch_cuda']}")]


def _process(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    torch, threads, limits = evidence["torch"], evidence["threads"], evidence["limits"]
    masks = "; ".join(f"{number} on CPUs {cpus}" for cpus, number in threads["masks"].items())
    return [
        ("threads", f"torch {torch['num_threads']}, interop {torch['interop_threads']}, all {threads['count']}"),
        ("masks", f"{masks or NOT_SEEN}; started on CPUs {threads['started_on']}"),
        ("limits", f"throttled {limits['throttled_s']} s, seccomp {limits['seccomp']}"),
    ]


def _libraries(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    openmp, malloc, mkl, onednn = (evidence[name] for name in ("openmp", "malloc", "mkl", "onednn"))
    mapped = _names(openmp["mapped"])
    rows = [
        ("OpenMP", f"{openmp['runtime']} ({mapped}), {openmp['max_threads']} threads, "
                   f"proc_bind {openmp['proc_bind']}, places {openmp['places']}, wait {openmp['wait_policy']}"),
        ("allocator", f"{malloc['allocator']} ({_names([malloc['library']])})"),
        ("preloads", _names(evidence["variables"]["preloaded"]) or "none"),
    ]  # fmt: skip
    if mkl.get("available"):
        rows.append(
            ("MKL", f"{mkl['version']}, {mkl['max_threads']} threads, {mkl['code']}, dispatch {mkl['dispatch']}")
        )
    if onednn.get("available"):
        rows.append(("oneDNN", f"{onednn['isa']}, fpmath {onednn['fpmath']}"))
    return [*rows, ("capability", f"{evidence['torch']['cpu_capability']}")]


def _names(paths: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(PurePath(path).name for path in paths if path)


def _shown(name: str, value: str | None) -> str:
    """Return a value if it says something of speed and nothing of a user: libraries by their file names."""
    if value is None:
        return HIDDEN
    if name == "LD_PRELOAD":
        return _names(re.split(r"[ :]+", value))
    return value if PLAIN.fullmatch(value) else HIDDEN
