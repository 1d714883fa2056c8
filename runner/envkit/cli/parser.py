"""The parser of a command: a short help, a full one, and errors that are messages.

An argument, or a group of them, is marked where it is added: ``add_argument(..., advanced=True)``. ``--help`` leaves
the advanced ones out, and ``--help-all`` prints all of them in their groups.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn, TypedDict

from envkit.common.errors import InputError
from envkit.common.suggestion import nearest
from envkit.messages import Message, Printed

if TYPE_CHECKING:
    from typing_extensions import Unpack

ADVANCED = "advanced"  # the attribute of an action


class ArgumentOptions(TypedDict, total=False):
    """The keywords of ``add_argument`` that the kit uses; typeshed has the same types."""

    action: str | type[argparse.Action]
    nargs: int | str
    const: object
    default: object
    type: Callable[[str], object]
    choices: Iterable[object]
    required: bool
    help: str | None
    metavar: str
    dest: str


class ParserOptions(TypedDict, total=False):
    """The keywords of a parser that the kit uses. Subparsers are given further ones by argparse."""

    prog: str
    description: str
    epilog: str


def load_messages() -> ModuleType:
    """Return the messages of the command line, imported only if something is wrong: `envkit exec` is to start fast."""
    return importlib.import_module("envkit.cli.messages")


class BadValue(argparse.ArgumentTypeError):
    """A type of an argument refuses a value, and ``problem`` says why."""

    def __init__(self, problem: Message) -> None:
        from envkit.rendering import text

        super().__init__(text(problem))  # which parsers of argparse itself print
        self.problem = problem


class _Marking(argparse._ActionsContainer):
    """A target for arguments: whether these are ``advanced`` if they don't say so themselves."""

    advanced = False

    # fewer keywords than argparse's, so that mypy finds one that is misspelled
    def add_argument(  # type: ignore[override]
        self, *names: str, advanced: bool | None = None, **options: Unpack[ArgumentOptions]
    ) -> argparse.Action:
        action = super().add_argument(*names, **options)
        setattr(action, ADVANCED, self.advanced if advanced is None else advanced)
        return action

    def add_argument_group(  # type: ignore[override]
        self, title: str | None = None, description: str | None = None, *, advanced: bool = False
    ) -> argparse._ArgumentGroup:
        """Return the group of this title: several callers may add to one."""
        for existing in self._action_groups:
            if title is not None and existing.title == title:
                return existing
        group = _Group(self, title, description)
        group.advanced = advanced
        self._action_groups.append(group)
        return group

    def add_mutually_exclusive_group(self, *, required: bool = False) -> argparse._MutuallyExclusiveGroup:
        group = _Exclusive(self, required=required)
        group.advanced = self.advanced
        self._mutually_exclusive_groups.append(group)
        return group


class _Group(_Marking, argparse._ArgumentGroup):
    pass


class _Exclusive(_Marking, argparse._MutuallyExclusiveGroup):
    pass


class _Help(argparse.Action):
    """Print the help, all of it if ``const`` is true, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *ignored: object) -> NoReturn:
        assert isinstance(parser, Parser), "no other parser has this action"
        parser._print_message(parser.format_help(full=bool(self.const)), sys.stdout)
        parser.exit()


class Parser(_Marking, argparse.ArgumentParser):
    """A parser of one command's arguments. Raises InputError with a message for everything that is wrong."""

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(
            **options, add_help=False, allow_abbrev=False, formatter_class=_of_fixed_width, exit_on_error=False
        )
        self._positionals.title = "arguments"
        self.add_argument("-h", "--help", nargs=0, action=_Help, const=False, help="print this help")
        self.add_argument("--help-all", nargs=0, action=_Help, const=True, help=argparse.SUPPRESS)

    def format_help(self, full: bool = False) -> str:
        """Return the help, with the advanced arguments only if it is ``full``."""
        shown = [action for action in self._actions if action.help != argparse.SUPPRESS]
        basic = [action for action in shown if not getattr(action, ADVANCED, False)]
        hidden = 0 if full else len(shown) - len(basic)
        self.formatter_class = argparse.HelpFormatter
        formatter = self._get_formatter()
        formatter.add_text(f"usage: {self.usage or self._usage()}")  # which add_usage would not break into lines
        formatter.add_text(self.description)
        sections: list[tuple[str | None, str | None, list[argparse.Action]]]
        if hidden:
            options = [action for action in basic if action.option_strings]
            positionals = [action for action in basic if not action.option_strings]
            # help last: an option of every command is the least interesting one
            options.sort(key=lambda action: isinstance(action, _Help))
            sections = [("arguments", None, positionals), ("options", None, options)]
        else:
            groups = [group for group in self._in_order() if any(action in shown for action in group._group_actions)]
            sections = [(group.title, group.description, group._group_actions) for group in groups]
        for title, description, actions in sections:
            formatter.start_section(title)
            formatter.add_text(description)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        if hidden:
            from envkit.rendering import text

            formatter.add_text(f"{text(load_messages().MoreOptions(self.prog, hidden))}.")
        return formatter.format_help()

    def _in_order(self) -> Iterator[argparse._ArgumentGroup]:
        """Yield the groups; options that are in no group come last."""
        first, options, *others = self._action_groups
        yield from (first, *others, options)

    def _usage(self) -> str:
        words = [self.prog, "[options]"]
        for action in self._actions:
            if not action.option_strings and action.help != argparse.SUPPRESS:
                name = str(action.metavar or action.dest)
                words.append({"?": f"[{name}]", "*": f"[{name} ...]", argparse.PARSER: f"{name} ..."}.get(
                    str(action.nargs), name))  # fmt: skip
        return " ".join(words)

    def parse_known_args(  # type: ignore[override]  # of argparse's own Namespace alone
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and raise InputError for an unknown argument: a subparser would leave that to its parent."""
        try:
            parsed, unknown = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            raise InputError(load_messages().BadUsage(error.message, self.prog, error.argument_name)) from None
        if unknown:
            raise InputError(self._unknown(unknown))
        return parsed, unknown

    def _unknown(self, words: Sequence[str]) -> Message:
        from envkit.cli.messages import UnexpectedArgument, UnknownOption

        dashed = next((word for word in words if word.startswith("-")), None)
        if dashed is None:
            return UnexpectedArgument(words[0], self.prog)
        option = dashed.partition("=")[0]
        options = [
            name for action in self._actions if action.help != argparse.SUPPRESS for name in action.option_strings
        ]
        return UnknownOption(option, self.prog, nearest(option, options))

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            cause = error.__context__
            problem = cause.problem if isinstance(cause, BadValue) else Printed(error.message)
            raise InputError(load_messages().BadOptionValue(_name(action), problem)) from None

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            choices = tuple(map(str, action.choices))
            problem = load_messages().UnknownChoice(str(value), choices, nearest(str(value), choices))
            raise InputError(load_messages().BadOptionValue(_name(action), problem))

    def error(self, message: str) -> NoReturn:
        """Raise InputError for what argparse says of no argument in particular, such as that one is missing."""
        raise InputError(load_messages().BadUsage(message, self.prog))


def _name(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)


def _of_fixed_width(prog: str) -> argparse.HelpFormatter:
    """Return what checks arguments as they are added. The default one imports 5 ms of modules for the width."""
    return argparse.HelpFormatter(prog, width=80)
