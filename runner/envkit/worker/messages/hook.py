"""Messages on processes that use torch without the evidence hook. ``starter`` is the command line that started it."""

from __future__ import annotations

from envkit.messages import Message


class WithoutHook(Message):
    """A process uses torch and has no hook."""

    template = "process {pid:d} ('{command}') runs without envkit's hook: {reason}"

    pid: int
    command: str
    reason: Message


class BundledPython(Message):
    """The program is no interpreter, and brings one."""

    template = "'{program}' brings a Python of its own, as PyInstaller makes it; run the script with python itself"

    program: str


class PythonTwo(Message):
    """The interpreter is Python 2."""

    template = "it is Python 2; run it with Python 3"


class PythonOption(Message):
    """An option of the interpreter keeps the hook out."""

    template = "with -{letter} Python does not load the hook; start it without -{letter}"

    letter: str


class VariableRemoved(Message):
    """One of the hook's variables was removed."""

    template = "{variable} was removed from its environment; let '{starter}' pass on PYTHONPATH and ENVKIT_*"

    variable: str
    starter: str


class EnvironmentEmptied(Message):
    """All of the hook's variables were removed."""

    template = (
        "its environment was emptied (env -i, sudo or a container of its own); "
        "let '{starter}' pass on PYTHONPATH and ENVKIT_*"
    )

    starter: str


class PathReplaced(Message):
    """PYTHONPATH was replaced."""

    template = (
        "PYTHONPATH={path} replaces the hook's folder; write PYTHONPATH={path}:$PYTHONPATH where '{starter}' sets it"
    )

    path: str
    starter: str


class HookNotMounted(Message):
    """The process can't see the hook's folder."""

    template = "it can't see {folder}, as in a container of its own; let '{starter}' mount that folder"

    folder: str
    starter: str


class OtherSitecustomize(Message):
    """Another ``sitecustomize`` comes before the hook."""

    template = (
        "{file} comes before the hook; write PYTHONPATH=$PYTHONPATH:{folder} where '{starter}' sets it; "
        "the hook then runs that file"
    )

    file: str
    folder: str
    starter: str


class CauseUnknown(Message):
    """Nothing shows why the hook is missing."""

    template = "cause unknown; see whether '{starter}' starts it with another sitecustomize"

    starter: str
