"""The command line: ``envkit COMMAND``. Each command is a module in ``envkit.cli.commands``."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
from types import FrameType, ModuleType
from typing import NoReturn

from envkit import __version__
from envkit.cli.messages import NoCommand
from envkit.common.errors import BAD_INPUT, INTERRUPTED, MEASURED, InputError
from envkit.common.printable import harmless
from envkit.rendering import text_of

WHAT_FOR = (
    "Find out what an environment (variables, preloaded libraries, bindings) is worth to PyTorch training on this "
    "machine, with proof, and use the best one."
)
COMMANDS = {
    "advise": "watch a training of your own for some seconds, and say which profiles are worth trying, and why",
    "bench": "measure profiles against the baseline and report the speedup, with proof",
    "plan": "measure the noise for a minute or two and say how long it takes to find a difference here",
    "calibrate": "measure the baseline against itself: how small a difference can be seen here",
    "matrix": "measure every profile that applies here against the baseline, in one run, and rank them",
    "ablate": "measure which of a profile's settings make it faster: each alone, and the profile without it",
    "tune": "search for the best environment on this machine, confirm it, and write it as a profile",
    "exec": "run a command of your own under a profile, and check when it ends that the profile was in effect",
    "env": "print a profile's settings for a shell, Docker, Apptainer, Slurm, Pyxis, Kubernetes, VS Code or Jupyter",
    "loader-grid": "measure the input with many settings of DataLoader: time by batch and workers, ends of epochs",
    "profile-ops": "show which operators or phases a training step's time goes to, for one profile or two",
    "submit": "measure on nodes of a Slurm cluster, or on hosts that ssh reaches: one job, one record for each node",
    "compare-engines": "measure one profile under several engines: what a container costs",
    "doctor": "find what is wrong before you measure, with a profile or with a command of your own",
    "profiles": "list the profiles",
    "show": "show what a profile would set on this machine, and why",
    "explain": "say what an environment variable does, who reads it and how it is verified",
    "report": "print the report of an earlier run again",
    "baseline": "save a run as a baseline, hold later runs against it, say what differs",
    "fleet": "measure the same on every node of a Slurm cluster, and report which are slow and what is different there",
    "history": "list the runs that were recorded, and what they found",
    "export-results": "write what was recorded for other tools: csv, json, parquet or openmetrics",
}
ENDING = (signal.SIGTERM, signal.SIGHUP)  # a batch system's end of time, a terminal that has gone
# What follows `--` is a command with options of its own: these run it, and the others of OWN_COMMAND measure it.
RUNS = ("exec", "doctor", "advise")
OWN_COMMAND = (
    *RUNS, "bench", "plan", "calibrate", "matrix", "ablate", "tune", "compare-engines", "submit",
    "fleet", "baseline", "loader-grid",
)  # fmt: skip
EXIT_STATUSES = (
    "exit status: 0 done, 1 a worker failed, a profile was not in effect or a target not reached, 2 bad input, "
    "130 interrupted"
)


def interrupt(number: int, frame: FrameType | None) -> None:
    """The handler of signals that ask the runner to end. Once is enough: Slurm sends SIGTERM twice, and the second one
    must not cut short what the first one has it write down."""
    for one in ENDING:
        if signal.getsignal(one) != signal.SIG_IGN:
            signal.signal(one, lambda number, frame: None)  # not SIG_IGN, which programs that are started would inherit
    raise KeyboardInterrupt


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, as everything else here does: a command's usage may have twenty."""

    def error(self, message: str) -> NoReturn:
        known = message.startswith("argument ")  # what is wrong with one, and mostly how it is to be
        raise InputError(message if known else f"{message}; see {self.prog} --help")


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        return _run(argv)
    except InputError as error:
        print(f"envkit: {_in_one_line(text_of(error))}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("envkit: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader of the output has gone (`runner … | head`): nothing is left to say
        return MEASURED
    except OSError as error:
        _drop_output()
        said = str(error)
        if error.errno == errno.EAGAIN:
            from envkit.checks.process_limit import reached

            said = f"no more processes or threads can be started: {reached()}"
        print(f"envkit: {_in_one_line(said)}", file=sys.stderr)
        return BAD_INPUT


def _in_one_line(message: str) -> str:
    """Also where it quotes a name that has a line feed in it."""
    return harmless(" ".join(message.splitlines()))


def _module(command: str) -> ModuleType:
    try:
        return importlib.import_module(f"envkit.cli.commands.{command.replace('-', '_')}")
    except ModuleNotFoundError as error:
        raise InputError(f"the package '{error.name}' is missing; 'make setup' installs all of them") from None


def _run(argv: list[str] | None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    name = argv[0] if argv else ""
    if name not in COMMANDS:
        return _no_command(argv)
    module, arguments = parsed(argv)
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, interrupt)
    status = int(module.run(arguments))
    if sys.stdout:  # None where it was closed
        sys.stdout.flush()  # a disk that is full is to be noticed here
    return status


def parsed(argv: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """Return the module of the command that ``argv`` begins with, and its options. Raise InputError."""
    name = argv[0]
    module = _module(name)  # only what is asked for, and one parser: `exec` is to start fast
    parser = Parser(
        prog=f"envkit {name}", description=COMMANDS[name], epilog=EXIT_STATUSES, formatter_class=_of_fixed_width
    )
    parser.set_defaults(command=name)
    module.add_arguments(parser)
    parser.formatter_class = argparse.HelpFormatter
    own = argv.index("--") if name in OWN_COMMAND and "--" in argv else None
    arguments = parser.parse_args(argv[1:own])
    if name in OWN_COMMAND:
        arguments.user_command = None if own is None else argv[own + 1 :]
        if arguments.user_command == [] and name not in RUNS:
            profile = getattr(arguments, "profile", None) or None
            raise InputError(NoCommand(name, profile if isinstance(profile, str) else profile and profile[0]))
    return module, arguments


def _of_fixed_width(prog: str) -> argparse.HelpFormatter:
    """What checks arguments as they are added: to ask for the terminal's width, it would import 5 ms of modules."""
    return argparse.HelpFormatter(prog, width=80)


def _no_command(argv: list[str]) -> int:
    """Print the help or the version, or say that there is no such command."""
    parser = Parser(prog="envkit", description=WHAT_FOR, epilog=EXIT_STATUSES)
    parser.add_argument("--version", action="version", version=f"envkit {__version__}")
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        choices.add_parser(name, help=text)
    parser.parse_known_args(argv)
    parser.error("COMMAND comes first")


def _drop_output() -> None:
    """Let what can't be written go, or Python would complain of it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
