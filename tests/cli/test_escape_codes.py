"""Escape codes in any text that others wrote: a terminal is given none of them, and a file or pipe all."""

from __future__ import annotations

import copy
import json
import os
import pty
import re
import subprocess
import sys
import tty
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

import pytest
from envkit.common import output
from envkit.common.live_view import LiveView
from envkit.common.printable import encoded, harmless

from tests import records
from tests.conftest import CODE_PATH, command_line
from tests.records import arm
from tests.sessions import session

# Colours, a title, a link, the clipboard, 8-bit control characters, movements, directions and what takes no room.
CANARY = (
    "<\x1b[35;5m\x1b]0;t\x07\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\\x1b]52;c;Zg==\x07\x9b2J\x85\x9d\x08\r\x7f\0"
    "\u202e\u2066\u2069\u200b\u200d\u061c\u2028\ufeff\U000e0041>"
)
# What a profile can set a variable to.
VALUE = CANARY.replace("\0", "").replace("\U000e0041", "")
# What the kit itself has a terminal do: colours and weights, and, for a line that is drawn anew, movements.
OWN_COLOURS = re.compile(r"\x1b\[(?:0|[0-9]|3[0-7]|38;5;\d+|[12];3[0-7])?m")
OWN_MOVEMENTS = re.compile(r"\r|\x1b\[(?:2K|1A|\?25[lh])")
# A name of a folder that is not UTF-8.
NOT_UTF8 = os.fsdecode(b"r\xff\x9bn")

NOT_TEXT = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode's categories of what is not seen, but tab and line feed


def harm(printed: bytes, moves: bool = False) -> set[str]:
    """Return what a terminal was given besides text and the kit's own colours."""
    text = OWN_COLOURS.sub("", printed.decode("utf-8", "surrogateescape"))
    text = OWN_MOVEMENTS.sub("", text) if moves else text
    return {one for one in text if unicodedata.category(one) in NOT_TEXT and one not in "\t\n"}


@contextmanager
def a_terminal():
    """Make a terminal; its name, and a function that returns what was written to it so far."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)

    def read() -> bytes:
        printed = b""
        with suppress(BlockingIOError):  # which says that there is no more
            while more := os.read(ours, 65536):
                printed += more
        return printed

    try:
        yield os.ttyname(theirs), read
    finally:
        os.close(ours)
        os.close(theirs)


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where texts are in a document; of a list the first item stands for all."""
    if isinstance(value, str):
        yield place
    parts = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from leaves(inner, (*place, key))


def planted(document: Any, place: tuple[Any, ...]) -> Any:
    """Return the document with the canary in the text at ``place``, and in a key beside it."""
    changed = inner = copy.deepcopy(document)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] += CANARY
    return changed


@pytest.fixture
def lines(tmp_path):
    """The events of a run in which one arm, and its profile, has the canary for a name, and the folder they are in."""
    folder = session(tmp_path / "results" / "run", arms=(arm("baseline"), arm(f"mine{CANARY}")))
    return [json.loads(line) for line in (folder / records.FILE_NAME).read_text().splitlines()], folder


def test_each_text_of_a_record_alone(lines, on_terminal):
    """Some make the record one that is refused, and the refusal names them."""
    events, folder = lines
    first = {event["event"]: number for number, event in reversed([*enumerate(events)])}
    places = [(number, *place) for number in first.values() for place in leaves(events[number])]
    # arms are called so elsewhere in the record too, and the fixture has one of such a name
    places = [place for place in places if place[-1] not in ("arm", "name") or "arms" not in place]
    assert len(places) > 50
    for place in places:
        records.write(folder, planted(events, place))
        for options in ((), ("--details",), ("--markdown",)):
            status, printed = on_terminal("report", folder, *options)
            assert (status in (0, 2), harm(printed)) == (True, set()), place


OF_RECORDS = [
    "report RUN", "report RUN --details", "report RUN --markdown", "report RUN --json", "report RUN --markdown TTY",
    "history RESULTS", "history RESULTS --json", "export RUN --format csv", "export RUN --format openmetrics",
    "export RUN --format json", "export RUN --format csv --output TTY", "baseline save old --from RUN",
    "baseline save CANARY --from RUN", "baseline list", "baseline check old --against RUN", "baseline diff old old",
    "fleet report RESULTS", "fleet report RESULTS --json", "fleet report RESULTS --prometheus TTY",
    "fleet diff RESULTS RESULTS", "bench mine --resume RUN", "matrix --resume RUN", "explain CANARY", "show CANARY",
    "bench CANARY", "CANARY", "report CANARY", "report --CANARY", "exec CANARY -- true", "tune --space CANARY",
]  # fmt: skip


def test_all_texts_of_a_record_at_once(lines, on_terminal, cli, tmp_path, monkeypatch):
    """Every command that reads one, beside a record that can't be read, in a folder of an odd name."""
    events, folder = lines
    kept = ("event", "engine", "workload", "code", "arm", "name", "scaling", "digest", "kit_version")
    for number, event in enumerate(events):
        for place in [*leaves(event)]:
            if place[-1] not in kept and not {*place} & {"arms", "comparisons"}:
                events = planted(events, (number, *place)) if number < 4 else events
    records.write(folder, events)
    broken = folder.parent / "broken\x1b[35;5m\x9b2J"
    records.write(broken, [{**records.run_events()[0], f"k{CANARY}": CANARY, "schema": CANARY}])
    odd = folder.parent / "odd\x1b[35;5m\x9b2J\u202e"
    folder.rename(odd)
    for command in OF_RECORDS:
        names = {"RUN": odd, "RESULTS": odd.parent, "TTY": "/dev/tty", "CANARY": CANARY.replace("\0", "")}
        words = [names.get(word, word.replace("CANARY", names["CANARY"])) for word in command.split()]
        print(command)
        status, printed = on_terminal(*words, cwd=tmp_path)
        print(status, printed[:200])
        assert harm(printed) == set(), command
        assert b"Traceback" not in printed


@pytest.fixture
def odd_profile(write_profile):
    """Write the profile ``mine``, with the canary in a setting and in what it expects."""
    quoted = json.dumps(VALUE)
    return lambda: write_profile("mine", f"env: {{SIMULATED: mine, ODD: {quoted}}}\nexpect: {{malloc.allocator: {quoted}}}\n")


@pytest.mark.parametrize("does", ["exit", "print"])
def test_what_workers_say_while_a_live_view_is_drawn(
    does, bench_arguments, simulation, instant, on_terminal, odd_profile, run_folder
):  # fmt: skip
    simulation.worker("mine", does=does, text=CANARY, status=3, stderr=CANARY, **{"from": 2})
    arguments = bench_arguments("mine", "--allow-unknown")
    odd_profile()
    status, printed = on_terminal(*arguments)
    assert (status, harm(printed, moves=True)) == (1, set())
    assert b"\x1b[?25l" in printed, "there was a live view"
    assert b"\\x1b[35;5m" in printed
    assert harm(on_terminal("report", run_folder, "--details")[1]) == set()


def test_what_profiles_say(odd_profile, on_terminal, cli, simulation, own_surroundings):
    file = odd_profile()
    folder = own_surroundings / "config/envkit/profiles"
    folder.mkdir(parents=True)
    bad = folder / f"bad{VALUE.replace('/', '')}.yaml"
    bad.write_text(f"name: {json.dumps(VALUE)}\n{json.dumps(VALUE)}: 1\n")
    options = ("--python", simulation.python)
    unknown = ("--allow-unknown",)
    for command in (("show", file, *options, *unknown), ("env", file, *options, *unknown), ("doctor", file, *options),
                    ("profiles",), ("show", bad.stem), ("show", bad), ("bench", bad, *options)):  # fmt: skip
        for more in ((), ("--json",)):
            _, printed = on_terminal(*command, *more)
            assert harm(printed) == set(), command
            assert b"x1b" in printed or more, command
    # a pipe is given what is to be run
    assert f"ODD={VALUE}" in cli("env", file, *options, *unknown, "--format", "docker").stdout


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_folder_whose_name_is_not_of_the_encoding(encoding, on_terminal, tmp_path):
    """A byte that is not UTF-8, and letters that ASCII lacks, are readable escapes."""
    folder = session(tmp_path / "results" / f"{NOT_UTF8} é测")
    records.write(folder.parent / f"bad{NOT_UTF8}", [{"event": "run", "schema": 1}])
    for command in (("report", folder), ("report", folder, "--details"), ("report", folder, "--markdown"),
                    ("history", folder.parent), ("export", folder.parent, "--format", "csv"),
                    ("export", folder.parent, "--format", "openmetrics"), ("report", f"{folder}x"),
                    ("baseline", "save", "a", "--from", folder, "--folder", tmp_path / f"b{NOT_UTF8}"),
                    ("baseline", "list", "--folder", tmp_path / f"b{NOT_UTF8}"),
                    ("fleet", "report", folder.parent), (f"r{NOT_UTF8}",), ("show", NOT_UTF8)):  # fmt: skip
        _, printed = on_terminal(*command, encoding=encoding)
        assert harm(printed.decode(encoding).encode()) == set(), command
        assert rb"r\xff\x9bn" in b"".join(printed.split()).replace(b"\\\\", b"\\") or "--markdown" in command or command[0] == "baseline", command


@pytest.mark.parametrize("option", ["--html", "--markdown", "csv", "openmetrics", "json", "parquet", "--prometheus"])
def test_a_file_on_a_folder_whose_name_is_not_utf_8(option, cli, tmp_path):
    folder = session(tmp_path / "results" / NOT_UTF8)
    file = tmp_path / "file"
    if option == "--prometheus":
        result = cli("fleet", "report", folder.parent, option, file)
    elif option.startswith("--"):
        result = cli("report", folder, option, file)
    else:
        result = cli("export", folder, "--format", option, "--output", file)
    assert result.returncode in (0, 1), result
    assert file.stat().st_size
    if option != "parquet":
        assert file.read_bytes().decode()


@pytest.mark.parametrize("variables", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
                                       {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "utf-8:strict"}])  # fmt: skip
def test_pipes_of_any_encoding(variables, start, tmp_path):
    """A document is UTF-8 whatever the locale, and messages are readable."""
    folder = session(tmp_path / "é\x1b")
    process = start("export", folder, "--format", "csv", **variables)
    assert process.stdout.buffer.read().decode().splitlines()[1].startswith(f"{folder},")
    assert process.wait() == 0
    process = start("report", tmp_path / NOT_UTF8, **variables)
    assert (process.stdout.read(), rb"r\xff\x9bn" in process.stderr.buffer.read(), process.wait()) == ("", True, 2)


def test_a_terminal_that_is_named_as_a_file(tmp_path, cli):
    folder = session(tmp_path / "run", arms=(arm("baseline"), arm(f"mine{CANARY}")))
    for command in (("export", folder, "--format", "csv", "--output"), ("report", folder, "--markdown")):
        with a_terminal() as (name, read):
            assert cli(*command, name).returncode == 0
            printed = read()
        assert rb"\x1b" in printed
        assert harm(printed) == set()
        file = tmp_path / "file"
        assert cli(*command, file).returncode == 0
        assert b"\x1b" in file.read_bytes() or command[0] == "report"  # which has no such text as it is


def test_the_verdict_of_a_command(start, write_profile, tmp_path):
    """The command itself writes to its terminal what it likes."""
    profile = write_profile("mine", f"env: {{OMP_NUM_THREADS: 1}}\nexpect: {{malloc.allocator: {json.dumps(VALUE)}}}\n")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / f"s{VALUE.replace('/', '')}.sh"
    script.write_text("#!/bin/sh\nprintf '\\033[35;5mown'\nkill -9 $$\n")
    script.chmod(0o755)
    with a_terminal() as (name, read), open(name, "w") as stream:
        status = subprocess.run(command_line("exec", profile, "--", script), stdout=stream, stderr=stream,
                                env={**os.environ, "PYTHONPATH": CODE_PATH}, check=False).returncode  # fmt: skip
        printed = read()
    assert status == 128 + 9
    assert printed.startswith(b"\x1b[35;5mown")
    assert rb"s<\x1b[35;5m" in printed
    assert harm(printed.replace(b"\x1b[35;5mown", b"")) == set()


def test_a_traceback_and_a_warning_are_text(tmp_path):
    """A defect of the kit, or a library that warns, must not give the terminal away."""
    code = (
        "import warnings, logging\nfrom envkit.common import output\noutput.guard()\n"
        f"warnings.warn({CANARY!r})\nlogging.error({CANARY!r})\nraise ValueError({CANARY!r})\n"
    )
    with a_terminal() as (name, read), open(name, "w") as stream:
        subprocess.run([sys.executable, "-c", code], stderr=stream, env={**os.environ, "PYTHONPATH": CODE_PATH})
        printed = read()
    assert printed.count(rb"<\x1b[35;5m") == 3
    assert harm(printed) == set()


def test_a_print_beside_a_live_view():
    """A live view takes the streams over, and would act upon links and colours itself."""
    with a_terminal() as (name, read), open(name, "w") as stream, redirect_stderr(stream), redirect_stdout(stream):
        output.guard()
        with LiveView(quiet=False):
            print(CANARY, file=sys.stderr)
            print(CANARY)
        print(CANARY)
        sys.stdout.flush()
        printed = read()
    assert printed.count(rb"\x1b[35;5m") == 3
    assert harm(printed, moves=True) == set()


def test_every_character_that_is_not_shown():
    """All control and format characters, halves of pairs and ends of lines, as Unicode's own table has them."""
    acted_upon = [one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) in NOT_TEXT]
    assert [one for one in acted_upon if harmless(one) == one] == ["\t", "\n"]
    assert harmless("ü 测 ⚠️ \t\n") == "ü 测 ⚠️ \t\n"
    assert encoded(NOT_UTF8) == rb"r\xff\x9bn"
