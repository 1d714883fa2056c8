"""The worker's command line: ``inspect`` describes the machine, ``train`` measures a sample, ``yardstick`` its pace."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="python -m runner.worker", description=__doc__)
    commands = main.add_subparsers(dest="command", required=True)
    look = commands.add_parser(
        "inspect", help="print the host facts, packages and libraries that are seen from in here"
    )
    look.add_argument("--command", action="append", default=[], help="say also where this command is", dest="look_for")
    train = commands.add_parser("train", help="run the workload once and print what was measured and observed")
    train.add_argument("--workload", required=True, help="name of the workload, for example cnn")
    train.add_argument("--data", required=True, metavar="DIR", help="folder of the data set, or 'synthetic'")
    train.add_argument("--warmup-steps", type=int, default=0, help="untimed steps before the timed ones")
    train.add_argument("--steps", type=int, default=0, help="timed steps")
    train.add_argument("--epochs", type=int, default=0, help="train this many whole epochs instead, then test")
    fixed = commands.add_parser("yardstick", help="time a fixed piece of work that no profile touches")
    for command in (train, fixed):
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
            # kill -9 of the runner must not leave a worker behind that spoils the next run's timing
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != arguments.die_with_parent:
                return 1  # it was killed before we asked to be told
        if arguments.command == "yardstick":
            from runner.worker.yardstick import yardstick

            result = yardstick()
        else:
            from runner.worker.train import train

            result = train(
                arguments.workload, arguments.data, arguments.warmup_steps, arguments.steps, arguments.epochs
            )
    with os.fdopen(document, "w") as out:
        json.dump(result, out)
        out.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
