"""``python -m tests.cases``: run every case and print what envkit says of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from envkit.common.errors import BAD_INPUT, InputError
from envkit.common.machine_lock import machine_lock
from envkit.rendering import text_of

from tests.cases.case import Case, Outcome, try_out
from tests.cases.list import CASES


def main() -> int:
    """Run the chosen cases; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=[case.name for case in CASES])
    chosen = parser.parse_args().only
    try:
        with machine_lock():
            found = answers([case for case in CASES if not chosen or case.name in chosen])
    except InputError as error:
        print(f"cases: {text_of(error)}", file=sys.stderr)
        return BAD_INPUT
    right = sum(outcome.right for _, outcome in found)
    print(f"{right} of {len(found)} answers are right")
    return 0 if right == len(found) else 1


def answers(cases: Sequence[Case] = CASES) -> list[tuple[Case, Outcome]]:
    """Print each launch's outcome, and return them all."""
    found = []
    for case in cases:
        if not case.can_run:
            print(f"{case.title}\n  not run: it takes root\n", flush=True)
            continue
        for launch in case.launches:
            outcome = try_out(case, launch)
            found.append((case, outcome))
            print(f"{case.title}\n  $ {_command(outcome)}\n  {outcome.said}\n", flush=True)
    return found


def row(case: Case, outcome: Outcome) -> tuple[str, ...]:
    """Return the cells of a table: the case, the command, what envkit said, and whether it is right."""
    return case.title, f"`{_command(outcome)}`", outcome.said, "yes" if outcome.right else "NO"


def _command(outcome: Outcome) -> str:
    launch = outcome.launch
    exported = " ".join(f"{name}={value}" for name, value in launch.env.items())
    return " ".join(f"{exported} {launch.under} envkit {launch.words}".replace("@PYTHON@", "python").split())


if __name__ == "__main__":
    sys.exit(main())
