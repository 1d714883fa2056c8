"""The worker's command line: ``inspect`` describes the machine, ``train`` measures a sample, ``yardstick`` its pace.

``operators`` shows where a step's time goes, and ``command`` measures a sample of somebody's own training.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from typing import Any

from runner.worker import modes

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="python -m runner.worker", description=__doc__)
    commands = main.add_subparsers(dest="command", required=True)
    look = commands.add_parser(
        "inspect", help="print the host facts, packages and libraries that are seen from in here"
    )
    look.add_argument("--command", action="append", default=[], help="say also where this command is", dest="look_for")
    train = commands.add_parser("train", help="run the workload once and print what was measured and observed")
    profiled = commands.add_parser("operators", help="run the workload under PyTorch's profiler")
    for command in (train, profiled):
        command.add_argument("--workload", required=True, help="name of the workload, for example cnn")
        command.add_argument("--data", required=True, metavar="DIR", help="folder of the data set, or 'synthetic'")
        command.add_argument("--warmup-steps", type=int, default=0, help="untimed steps before the timed ones")
        command.add_argument("--steps", type=int, default=0, help="timed steps")
        modes.add_arguments(command)
    train.add_argument("--quality", action="store_true", help="test at the end what was learnt, after steps too")
    train.add_argument("--epochs", type=int, default=0, help="train this many whole epochs instead, then test")
    fixed = commands.add_parser("yardstick", help="time a fixed piece of work that no profile touches")
    own = commands.add_parser(
        "command", help="run somebody's own training once and print what was measured and observed"
    )
    own.add_argument("--folder", required=True, metavar="DIR", help="where to run it")
    own.add_argument("--metric", help="which lines end a step, or hold its time (default: all of it is one step)")
    own.add_argument("--unit", default="s", help="of the metric's numbers: s, ms, us or per-second")
    own.add_argument("--warmup-lines", type=int, default=0, metavar="N", help="leave the first N readings out")
    own.add_argument("argv", nargs="+", metavar="COMMAND")
    for command in (train, profiled, fixed, own):
        command.add_argument("--die-with-parent", type=int, metavar="PID", help="be killed when the parent, PID, dies")
    return main


def own_stdout() -> int:
    """Keep stdout for the document alone and send what anything else prints there to stderr.

    Returns the file descriptor to write the document to.
    """
    document = os.dup(1)
    os.dup2(2, 1)
    return document


def main() -> int:
    arguments = parser().parse_args()
    document = own_stdout()
    result: dict[str, Any]
    if arguments.command == "inspect":
        from runner.worker.inspection import inspect

        result = inspect(arguments.look_for)
    else:
        if arguments.die_with_parent:
            # kill -9 of the runner must not leave a worker behind that spoils the next run's timing; one that has a
            # child has to end that first
            how = signal.SIGTERM if arguments.command == "command" else signal.SIGKILL
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, how)
            if os.getppid() != arguments.die_with_parent:
                return 1  # it was killed before we asked to be told
        if arguments.command == "yardstick":
            from runner.worker.yardstick import yardstick

            result = yardstick()
        elif arguments.command == "operators":
            from runner.worker.operators import operators

            result = operators(
                arguments.workload, arguments.data, arguments.warmup_steps, arguments.steps, modes.given(arguments)
            )
        elif arguments.command == "command":
            from runner.worker.command import attempt

            result = attempt(arguments)
        else:
            from runner.worker.train import train

            result = train(
                arguments.workload,
                arguments.data,
                arguments.warmup_steps,
                arguments.steps,
                arguments.epochs,
                modes.given(arguments),
                arguments.quality,
            )
    with os.fdopen(document, "w") as out:
        json.dump(result, out)
        out.write("\n")
    return 1 if "problem" in result else 0


if __name__ == "__main__":
    sys.exit(main())
