"""The command line: ``runner COMMAND``. Each command is a module in ``runner.commands``."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from types import FrameType

from runner import __version__
from runner.errors import BAD_INPUT, INTERRUPTED, InputError

COMMANDS = {
    "bench": "measure a profile against the baseline and report the speedup, with proof",
    "compare-engines": "measure one profile under several engines: what a container costs",
    "doctor": "find what is wrong before you measure, with a profile or with a command of your own",
    "profiles": "list the profiles",
    "show": "show what a profile would set on this machine, and why",
    "report": "print the report of an earlier run again",
}
EXIT_STATUSES = "exit status: 0 done, 1 a worker failed or a profile was not in effect, 2 bad input, 130 interrupted"


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        commands = {name: importlib.import_module(f"runner.commands.{name.replace('-', '_')}") for name in COMMANDS}
    except ModuleNotFoundError as error:
        print(f"runner: the package '{error.name}' is missing; 'make setup' installs all of them", file=sys.stderr)
        return BAD_INPUT
    parser = argparse.ArgumentParser(prog="runner", description=__doc__.splitlines()[0], epilog=EXIT_STATUSES)
    parser.add_argument("--version", action="version", version=f"runner {__version__}")
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = choices.add_parser(name, help=text, description=text, epilog=EXIT_STATUSES)
        commands[name].add_arguments(command)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)  # a batch system's end of time is an interrupt like Ctrl-C
    try:
        return int(commands[arguments.command].run(arguments))
    except InputError as error:
        print(f"runner: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("runner: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has gone (`runner … | head`): nothing is left to say
        return 0
