"""Escape codes in any text that others wrote: a terminal is given none of them, and a file or pipe all."""

from __future__ import annotations

import copy
import json
import os
import pty
import re
import subprocess
import sys
import threading
import tty
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from envkit.bench import record
from envkit.cli.commands import doctor
from envkit.common import output
from envkit.common.live_view import LiveView
from envkit.common.printable import encoded, harmless

from tests import records
from tests.conftest import CODE_PATH, command_line, read_all
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
    """Make a terminal, and read what is written to it; its name, and the list that at the end holds that."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    printed: list[bytes] = []
    reader = threading.Thread(target=lambda: printed.append(read_all(ours)))
    reader.start()
    try:
        yield Path(os.ttyname(theirs)), printed
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where texts are in a document; of a list the first item stands for all."""
    if isinstance(value, str):
        yield place
    parts = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from leaves(inner, (*place, key))


def planted(events: list[Any], number: int, place: tuple[Any, ...]) -> list[Any]:
    """Return the events with the canary in the text at ``place`` of one of them, of which alone there is a copy."""
    changed = inner = copy.deepcopy(events[number])
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] += CANARY
    return [*events[:number], changed, *events[number + 1 :]]


@pytest.fixture
def lines(tmp_path):
    """The events of a run in which one arm, and its profile, has the canary for a name, and the folder they are in."""
    folder = session(tmp_path / "results" / "run", arms=(arm("baseline"), arm(f"mine{CANARY}")))
    return [json.loads(line) for line in (folder / records.FILE_NAME).read_text().splitlines()], folder


def test_each_text_of_a_record_alone(lines, on_terminal):
    """Some make the record one that is refused, and the refusal names them."""
    events, folder = lines
    first = {event["event"]: number for number, event in reversed([*enumerate(events)])}
    places = [(number, place) for number in first.values() for place in leaves(events[number])]
    # arms are called so elsewhere in the record too, and the fixture has one of such a name
    places = [(number, place) for number, place in places if place[-1] not in ("arm", "name") or "arms" not in place]
    assert len(places) > 50
    for number, place in places:
        records.write(folder, planted(events, number, place))
        status, printed = on_terminal("report", folder, "--details")
        assert (status in (0, 2), harm(printed)) == (True, set()), (number, *place)


COMMANDS = [
    "report RUN", "report RUN --details", "report RUN --markdown", "report RUN --json", "report RUN --markdown TTY",
    "history RESULTS", "history RESULTS --json", "export RUN --format csv", "export RUN --format openmetrics",
    "export RUN --format json", "export RESULTS --format csv", "export RUN --format csv --output TTY",
    "baseline save old --from RUN", "baseline save CANARY --from RUN", "baseline list",
    "baseline check old --against RUN", "baseline diff old old", "fleet report RESULTS", "fleet report RESULTS --json",
    "fleet report RESULTS --prometheus TTY", "fleet diff RESULTS RESULTS", "bench --resume RUN", "matrix --resume RUN",
    "explain CANARY", "show CANARY", "bench CANARY", "CANARY", "report CANARY", "report RUN --CANARY",
    "exec CANARY -- true", "tune --space CANARY", "history RUN --engine CANARY", "bench baseline --engine CANARY",
    "submit CANARY --dry-run", "doctor CANARY", "matrix CANARY",
]  # fmt: skip
# It says in which folder the runs are, whose name is not odd.
NAMES_NOTHING = {"fleet diff RESULTS RESULTS"}
# Texts without which the record would be none, or not the one that its own digests are of.
MUST_STAY = (
    "event",
    "engine",
    "workload",
    "code",
    "arm",
    "name",
    "scaling",
    "digest",
    "data",
    "initial_weights",
    "kit_version",
    "view",
)


def test_all_texts_of_a_record_at_once(lines, on_terminal, tmp_path):
    """Every command that reads one, beside a record that can't be read, in folders of odd names."""
    events, folder = lines
    for number, event in enumerate(events):
        for place in leaves(event):
            if place[-1] not in MUST_STAY and not {"arms", "comparisons", "contrasts"} & {*place}:
                events = planted(events, number, place)
    records.write(folder, events)
    records.write(folder.parent / "broken\x1b[35;5m\x9b2J", [{**events[0], f"k{CANARY}": 1, "study": CANARY}])
    odd = folder.rename(folder.with_name("odd\x1b[35;5m\x9b2J\u202e"))
    value, without = CANARY.replace("\0", ""), set[str]()
    for command in COMMANDS:
        with a_terminal() as (name, into_file):
            names = {"RUN": odd, "RESULTS": odd.parent, "TTY": name}
            words = [names.get(word, word.replace("CANARY", value)) for word in command.split()]
            status, printed = on_terminal(*words, cwd=tmp_path)
        printed += into_file[0]
        assert (status in (0, 1, 2), harm(printed)) == (True, set()), command
        if not (b"x1b" in printed or b"u202e" in printed):
            without.add(command)
    assert without == NAMES_NOTHING


@pytest.fixture
def odd_profile(write_profile):
    """Write the profile ``mine``, with the canary in a setting and in what it expects."""
    quoted = json.dumps(VALUE)
    text = f"env: {{SIMULATED: mine, ODD: {quoted}}}\nexpect: {{malloc.allocator: {quoted}}}\n"
    return lambda: write_profile("mine", text)


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


def test_what_profiles_say(odd_profile, on_terminal, cli, simulation, own_surroundings, monkeypatch):
    monkeypatch.setattr(doctor, "LOAD_S", 0.1)
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
    records.write(folder.parent / f"bad{NOT_UTF8}", [{"event": "run", "schema": record.SCHEMA}])
    for command in (("report", folder), ("report", folder, "--details"), ("report", folder, "--markdown"),
                    ("history", folder.parent), ("export", folder.parent, "--format", "csv"),
                    ("export", folder.parent, "--format", "openmetrics"), ("report", f"{folder}x"),
                    ("baseline", "save", "a", "--from", folder, "--folder", tmp_path / f"b{NOT_UTF8}"),
                    ("baseline", "list", "--folder", tmp_path / f"b{NOT_UTF8}"),
                    ("fleet", "report", folder.parent), (f"r{NOT_UTF8}",), ("show", NOT_UTF8)):  # fmt: skip
        _, printed = on_terminal(*command, encoding=encoding)
        assert harm(printed.decode(encoding).encode()) == set(), command
        names_no_folder = "--markdown" in command or command[0] == "baseline"
        assert names_no_folder or rb"r\xff\x9bn" in b"".join(printed.split()).replace(b"\\\\", b"\\"), command


@pytest.mark.parametrize("option", ["--html", "--markdown", "csv", "openmetrics", "json", "parquet", "--prometheus"])
def test_a_file_on_a_folder_whose_name_is_not_utf_8(option, cli, tmp_path, undrawn):
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


@pytest.mark.parametrize(
    "variables",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "utf-8:strict"}],
)  # fmt: skip
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
        with a_terminal() as (name, printed):
            assert cli(*command, name).returncode == 0
        assert rb"\x1b" in printed[0]
        assert harm(printed[0]) == set()
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
    with a_terminal() as (name, printed), name.open("w") as stream:
        status = subprocess.run(command_line("exec", profile, "--", script), stdout=stream, stderr=stream,
                                env={**os.environ, "PYTHONPATH": CODE_PATH}, check=False).returncode  # fmt: skip
    assert status == 128 + 9
    assert printed[0].startswith(b"\x1b[35;5mown")
    assert rb"s<\x1b[35;5m" in printed[0]
    assert harm(printed[0].replace(b"\x1b[35;5mown", b"")) == set()


def test_a_traceback_and_a_warning_are_text(tmp_path):
    """A defect of the kit, or a library that warns, must not give the terminal away."""
    code = (
        "import warnings, logging\nfrom envkit.common import output\noutput.guard()\n"
        f"warnings.warn({CANARY!r})\nlogging.error({CANARY!r})\nraise ValueError({CANARY!r})\n"
    )
    with a_terminal() as (name, printed), name.open("w") as stream:
        variables = {**os.environ, "PYTHONPATH": CODE_PATH}
        subprocess.run([sys.executable, "-c", code], stderr=stream, env=variables, check=False)
    assert printed[0].count(rb"<\x1b[35;5m") == 3
    assert harm(printed[0]) == set()


def test_a_print_beside_a_live_view():
    """A live view takes the streams over, and would act upon links and colours itself."""
    with a_terminal() as (name, printed), name.open("w") as stream, redirect_stderr(stream), redirect_stdout(stream):
        output.guard()
        with LiveView(quiet=False):
            print(CANARY, file=sys.stderr)
            print(CANARY)
        print(CANARY)
        sys.stdout.flush()
    assert printed[0].count(rb"\x1b[35;5m") == 3
    assert harm(printed[0], moves=True) == set()


def test_every_character_that_is_not_shown():
    """All control and format characters, halves of pairs and ends of lines, as Unicode's own table has them."""
    acted_upon = [one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) in NOT_TEXT]
    assert [one for one in acted_upon if harmless(one) == one] == ["\t", "\n"]
    assert harmless("ü 测 ⚠️ \t\n") == "ü 测 ⚠️ \t\n"
    assert encoded(NOT_UTF8) == rb"r\xff\x9bn"
