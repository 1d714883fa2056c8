"""Messages on a user's command: it did not start, ended badly, or its optimizer's steps can't be timed."""

from __future__ import annotations

from envkit.messages import Message


class NoFolder(Message):
    """The folder to start the command in is not there."""

    template = "found no folder {folder} to start the command in"

    folder: str


class NoInterpreter(Message):
    """The first line of a script names a program that is not there."""

    template = "could not start '{program}': its first line names an interpreter that is not there"

    program: str


class NoProgram(Message):
    """A command with a slash in its name is not there."""

    template = "found no command '{program}' from {folder}"

    program: str
    folder: str


class NotInPath(Message):
    """No folder of PATH has the command."""

    template = "found no command '{program}' in PATH; is it ./{program}, or not installed"

    program: str


class NotExecutable(Message):
    """The command's file may not be executed."""

    template = "could not start the command '{program}': {reason}; chmod +x {program}"

    program: str
    reason: str


class NoExecFormat(Message):
    """The command's file is neither a program nor a script that names its interpreter."""

    template = "could not start the command '{program}': {reason}; its first line must be one like #!/bin/sh"

    program: str
    reason: str


class NotStarted(Message):
    """The system could not start the command, for another reason."""

    template = "could not start the command '{program}'[: {reason}]"

    program: str
    reason: str


class NoOutput(Message):
    """The command printed nothing."""

    template = "it printed nothing"


class LastLine(Message):
    """The last line that the command printed."""

    template = "its last line of output is '{line}'"

    line: str


class CommandKilled(Message):
    """A signal ended the command."""

    template = "saw the command killed by signal {signal}; {output}[; {memory}]"

    signal: str
    output: Message
    memory: Message | None = None


class CommandEnded(Message):
    """The command ended with a status other than 0."""

    template = "saw the command end with exit status {status:d}; {output}[; {memory}]"

    status: int
    output: Message
    memory: Message | None = None


class SecondOpenMP(Message):
    """Two OpenMP runtimes of Intel's or LLVM's met in one process. ``where`` is the line that loaded the second."""

    code = "worker.second-openmp"
    template = (
        "[{ended}; ]OMP: Error #15: the profile preloads {first}, and {where} loads {second}: two OpenMP runtimes of "
        "Intel's or LLVM's in one process abort it; take a profile that preloads none, such as gnu-omp or "
        "glibc-retain; KMP_DUPLICATE_LIB_OK hides the error and can give wrong results"
    )

    first: str
    second: str
    where: str
    ended: Message | None = None


class CopyTooLarge(Message):
    """The command's folder has more than can be copied for each start. ``names`` are the largest in it."""

    template = "can't copy the folder: it is too large ({names:list}); give --link, or --in-place"

    names: tuple[str, ...]


class CopyFailed(Message):
    """The system does not let the folder be copied."""

    template = "can't copy the folder: {reason}; give --link PATH, or --in-place"

    reason: Message


class NoRoom(Message):
    """Neither the folder nor the temporary one has room for a copy."""

    template = "no room for a copy of {folder} there or in {temporary}; set TMPDIR to a larger folder"

    folder: str
    temporary: str


class StepsHidden(Message):
    """A process that trains has no hook."""

    template = "can't see the optimizer's steps: {reason}"

    reason: Message


class NoSteps(Message):
    """The command took no step of a torch optimizer."""

    template = "took no step of a torch optimizer[ within {seconds:.0f} s]"

    seconds: float | None = None


class NoStepsBeforeEnd(Message):
    """The command ended without a step of a torch optimizer."""

    template = "took no step of a torch optimizer before it ended"


class NoTorch(Message):
    """No process of the command imports torch."""

    template = "found no process of the command that imports torch"


class NoTorchYet(Message):
    """No process of the command had imported torch when it was stopped."""

    template = "imported no torch"


class TorchTooOld(Message):
    """The command's torch does not tell of steps."""

    template = "has a torch that can't report optimizer steps; 2.1 or later can"


class OtherMeans(Message):
    """An optimizer's steps can't be timed; a metric, or the whole command, still can."""

    template = "{problem}; give --metric REGEX to read step times from its output, or --whole-command to time all of it"

    problem: Message


class SlowStart(Message):
    """The command took no step within the time that it was given for the first one."""

    template = (
        "{problem} within {seconds:g} s; give --optimizer-steps N if its start takes longer, "
        "--metric REGEX to read step times from its output, or --whole-command to time all of it"
    )

    problem: Message
    seconds: float


class FewStepsBeforeEnd(Message):
    """The command ended by itself after fewer steps than it takes. Both numbers have those to warm up."""

    template = (
        "saw the command end after {found:count step} of its optimizer, and it takes {needed:d}; "
        "let it train for longer, or give --whole-command to time all of it"
    )

    found: int
    needed: int


class FewerStepsThanAsked(Message):
    """The command ended by itself after fewer steps than the user asked for."""

    template = (
        "saw the command end before its optimizer took {needed:count step} ({warmup:d} to warm up); "
        "let it train for longer, or ask for fewer"
    )

    needed: int
    warmup: int


class TooShort(Message):
    """A command that was watched ended after too few steps."""

    template = "ended after {seconds:.1f} s with {steps:count step}: too short to be watched; let it train for longer"

    seconds: float
    steps: int


class FewStepsWatched(Message):
    """A command took too few steps while it was watched."""

    template = "took too few steps within {seconds:.0f} s: {needed:d} must count, after those to warm up"

    seconds: float
    needed: int
