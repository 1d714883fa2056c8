"""Was a profile in effect? Compare what it expects with what a worker observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.environment import Environment
from runner.worker.sensitive import is_sensitive


@dataclass(frozen=True)
class Check:
    """One thing that was expected, and what was seen in its place."""

    key: str
    expected: Any
    seen: Any

    @property
    def holds(self) -> bool:
        return _same(self.expected, self.seen)


def _same(expected: Any, seen: Any) -> bool:
    """Equal, whereby runtimes' texts may differ in case (``CLOSE``), but 1 is not True."""
    if isinstance(expected, str) and isinstance(seen, str):
        return expected.lower() == seen.lower()
    return type(expected) is type(seen) and bool(expected == seen)


def check(environment: Environment, evidence: Mapping[str, Any], kept: Mapping[str, str]) -> list[Check]:
    """Everything that must hold, in the order to read it: preloads, the profile's `expect`, then the variables.

    Of the variables that can change the outcome, the worker must have been given the profile's and those that the
    user chose to keep (``kept``), and no other. Variables that agree are not listed.
    """
    preloaded = evidence["variables"].get("preloaded", {})
    checks = [
        Check(f"preload.{library}", "mapped", preloaded.get(path, "not asked for"))
        for library, path in environment.preload.items()
    ]
    checks += [Check(key, expected, look_up(evidence, key)) for key, expected in environment.expect.items()]
    wanted = {name: value for name, value in {**kept, **environment.variables}.items() if is_sensitive(name)}
    given = evidence["variables"].get("sensitive", {})
    variables = [
        Check(f"variable {name}", wanted.get(name, "not set"), given.get(name, "not set"))
        for name in sorted(wanted.keys() | given.keys())
    ]
    return checks + [variable for variable in variables if not variable.holds]


def look_up(evidence: Mapping[str, Any], key: str) -> Any:
    """``openmp.settings.GOMP_SPINCOUNT`` in the nested evidence; None where there is nothing.

    A setting's own name may have dots (``malloc.settings.glibc.malloc.hugetlb``).
    """
    probe, _, rest = key.partition(".")
    found = evidence.get(probe) or {}
    if rest.startswith("settings."):
        return (found.get("settings") or {}).get(rest.removeprefix("settings."))
    return found.get(rest)
