"""The command line: ``envkit COMMAND``. Each command is a module in ``envkit.cli.commands``."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType
from typing import TextIO

from envkit import __version__
from envkit.cli.overview_messages import COMMANDS, EXIT_STATUSES
from envkit.cli.parser import Parser, load_messages
from envkit.common import extras, output
from envkit.common.errors import BAD_INPUT, INTERRUPTED, MEASURED, InputError, InterruptedWith
from envkit.common.suggestion import nearest
from envkit.messages import Message, message_of
from envkit.rendering import text

ENDING = (signal.SIGTERM, signal.SIGHUP)  # a batch system's end of time, a terminal that has gone
# What follows `--` is a command with options of its own: these run it, and the others of OWN_COMMAND measure it.
RUNS = ("exec", "doctor", "advise")
OWN_COMMAND = (
    *RUNS, "bench", "plan", "matrix", "ablate", "tune", "compare-engines", "submit",
    "fleet", "baseline", "loader-grid",
)  # fmt: skip
HELP, VERSION = ("-h", "--help", "--help-all"), ("-V", "--version")


def interrupt(number: int, frame: FrameType | None) -> None:
    """The handler of signals that ask the runner to end. Once is enough: Slurm sends SIGTERM twice, and the second one
    must not cut short what the first one has it write down."""
    for ending in ENDING:
        if signal.getsignal(ending) != signal.SIG_IGN:
            # not SIG_IGN, which programs that are started would inherit
            signal.signal(ending, lambda number, frame: None)
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    _open_stderr()
    output.guard()
    try:
        return _ended(argv)
    finally:
        _flush_stderr()


def _ended(argv: Sequence[str]) -> int:
    """Run one command, say what ended it early, and return its exit status."""
    try:
        status = _run(argv)
        if sys.stdout:  # None where it was closed
            sys.stdout.flush()  # a disk that is full is to be noticed here
        return status
    except InputError as error:
        return _failed(argv, error.message, BAD_INPUT, error.document)
    except KeyboardInterrupt as interrupted:
        document = interrupted.document if isinstance(interrupted, InterruptedWith) else None
        return _failed(argv, load_messages().Interrupted(), INTERRUPTED, document)
    except BrokenPipeError:
        _drop(sys.stdout)  # the reader of the output has gone (`envkit … | head`): nothing is left to say
        return MEASURED
    except OSError as error:
        problem = message_of(error)
        if error.errno == errno.EAGAIN:
            from envkit.checks.process_limit import reached

            problem = reached()
        return _failed(argv, load_messages().SystemRefused(problem), BAD_INPUT)


def _failed(argv: Sequence[str], message: Message, status: int, document: Mapping[str, object] | None = None) -> int:
    """Say on stderr what ended the command, with --json on stdout too, and return the exit status."""
    from envkit.cli.ending import end_with

    as_json = "--json" in argv[: _end_of_options(argv)]
    try:
        end_with(message, status, as_json, document)
        if sys.stdout:
            sys.stdout.flush()
    except OSError:  # it may be what ended the command: a full disk, or a reader that has gone
        _drop(sys.stdout)
    return status


def _end_of_options(argv: Sequence[str]) -> int:
    """Return where the user's own command begins, with its --, or the number of arguments."""
    return argv.index("--") if "--" in argv else len(argv)


def _say(message: Message) -> None:
    """Print a note beside what the command prints."""
    if sys.stderr:  # None where it was closed
        print(f"envkit: {text(message)}", file=sys.stderr)


def _module(command: str) -> ModuleType:
    try:
        module = importlib.import_module(f"envkit.cli.commands.{command.replace('-', '_')}")
        from envkit.profiles import profile
    except ModuleNotFoundError as error:
        raise extras.missing(_program(command), error) from None
    profile.announce = _say
    return module


def _program(command: str) -> str:
    """Return how a command is called on a command line."""
    return f"envkit {command}"


def parser_of(command: str) -> tuple[Parser, ModuleType]:
    """Return the parser of a command, and the module that runs it."""
    module = _module(command)  # only what is asked for, and one parser: `exec` is to start fast
    summary = COMMANDS[command]
    parser = Parser(prog=_program(command), description=f"{summary[0].upper()}{summary[1:]}.", epilog=EXIT_STATUSES)
    parser.set_defaults(command=command)
    module.add_arguments(parser)
    return parser, module


def _run(argv: Sequence[str]) -> int:
    if argv[:1] == ["help"] and len(argv) > 1 and argv[1] not in HELP:
        argv = [*argv[1:], "--help"]
    name = argv[0] if argv else "help"
    if name not in COMMANDS:
        return _no_command(name)
    module, arguments = parsed(argv)
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, interrupt)
    return int(module.run(arguments))


def parsed(argv: Sequence[str]) -> tuple[ModuleType, argparse.Namespace]:
    """Return the module of the command that ``argv`` begins with, and its options. Raise InputError."""
    name = argv[0]
    parser, module = parser_of(name)
    end = argv.index("--") if name in OWN_COMMAND and "--" in argv else None
    arguments = parser.parse_args(argv[1:end])
    if name in OWN_COMMAND:
        arguments.user_command = None if end is None else [*argv[end + 1 :]]
        if arguments.user_command == [] and name not in RUNS:
            profile = getattr(arguments, "profile", None) or None
            first = profile if isinstance(profile, str) else profile and profile[0]
            from envkit.cli.workload_messages import NoCommand

            raise InputError(NoCommand(name, first))
    return module, arguments


def _no_command(name: str) -> int:
    """Print the help or the version. Raise InputError for anything else."""
    if name in VERSION:
        print(f"envkit {__version__}")
        return MEASURED
    if name in HELP or name == "help":
        import shutil

        from envkit.cli.overview_messages import help_text

        print(help_text(shutil.get_terminal_size().columns), end="")
        return MEASURED
    if name.startswith("-"):
        raise InputError(load_messages().OptionBeforeCommand(name))
    raise InputError(load_messages().UnknownCommand(name, nearest(name, [*COMMANDS, "help"])))


def _open_stderr() -> None:
    """Let a closed stderr be /dev/null. Messages would go to stdout, or into the next file that is opened."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for as long as the program runs


def _flush_stderr() -> None:
    """Flush stderr. Python would otherwise end with status 120 instead of the status of the command."""
    try:
        sys.stderr.flush()
    except OSError:  # a log on a full disk, or a reader that has gone
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Let what a stream can't write go, or Python would complain of it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
