"""The faults that a run and its record must survive, each made for real through the command line."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import sys
from pathlib import Path

from envkit.bench.record import SCHEMA, Record

from tests.conftest import PROJECT
from tests.processes import until
from tests.reliability.kills import kill_at_random
from tests.reliability.place import TIMEOUT_S, Answer, Place
from tests.reliability.trial import CantPlant, Expectations, Fault, Finding

KILLS = 50
AT_ONCE = 4
# Each call of the clock is an hour before the last one.
BACKWARDS = """
import time
now = [time.time()]
def an_hour_back():
    now[0] -= 3600
    return now[0]
time.time = an_hour_back
"""
READERS = (["report"], ["history"], ["export", "--format", "json"])


def kills(folder: Path) -> Finding:
    outcome = kill_at_random(folder, KILLS)
    return Finding(
        done=f"SIGKILL at {outcome.kills} random moments of {outcome.runs} runs, {outcome.before_first_line} of them "
        f"before the first line was written, {outcome.in_a_line} within a line; after each the run was resumed",
        said="resumed, and each run came to its end",
        kept=f"every line that was whole after a kill; {outcome.samples} samples in the end, each once; "
        "no process was left",
        wrong=outcome.wrong,
    )


def killed_before_the_first_line(folder: Path) -> Finding:
    expect = Expectations()
    for number, begun in enumerate((b"", b'{"event": "run", "ti')):
        place = Place(folder / str(number))
        place.run.mkdir()
        place.record.write_bytes(begun)
        resumed = place.ask(*place.resume())
        expect.equal("the status of --resume", resumed.status, 2)
        expect.says("--resume", resumed.last, "it has no whole line; start the run again")
        expect.equal("the status of the same command", place.ask(*place.bench()).status, 0)
        expect.wrong += place.incomplete()
    return Finding(
        "the record is empty, or has half of its first line",
        resumed.last, "nothing had been measured; the same command starts the run", expect.wrong,
    )  # fmt: skip


def cut_at_every_byte(folder: Path) -> Finding:
    """Cut in this process at each byte of the last line, and through the command line at its ends and in its middle."""
    expect = Expectations()
    place = Place(folder)
    content = place.measured(samples=5)
    begin = content[:-1].rfind(b"\n") + 1
    before = content[:begin]
    for cut in range(begin, len(content)):
        place.record.write_bytes(content[:cut])
        with Record.reopen(place.run) as opened:
            half = place.record.read_bytes() != before
            opened.append("resume")
        if half or len(place.events()) != before.count(b"\n") + 1:
            expect.wrong.append(f"a cut at byte {cut} of {begin} to {len(content)} leaves half a line")
            break
    for cut in (begin, (begin + len(content)) // 2, len(content) - 1):
        place.record.write_bytes(content[:cut])
        resumed = place.ask(*place.resume())
        expect.equal("the status of --resume", resumed.status, 0)
        expect.that(place.whole_lines().startswith(before), f"a cut at byte {cut} lost whole lines")
        expect.wrong += place.incomplete()
    return Finding(
        f"the record was cut at each of the {len(content) - begin} bytes of its last line",
        "resumed and came to its end",
        "all lines before; the sample that was cut is measured again", expect.wrong,
    )  # fmt: skip


def full_disk(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    mount = folder / "mount"
    mount.mkdir()
    place.run = mount / "run"
    script = f"""
        mount -t tmpfs -o size=32k none {mount} || exit 99
        {_shell(place, place.bench("--steps", 200, "--blocks", 6))} >/dev/null 2>{folder}/first
        echo $? >{folder}/status
        cp {place.record} {folder}/before
        mount -o remount,size=4m {mount} || exit 99
        {_shell(place, place.resume())} >/dev/null 2>{folder}/second
        echo $? >>{folder}/status
        cp -r {mount}/run {folder}/after"""
    _as_root_of_a_namespace(script)
    place.run = folder / "after"
    before = (folder / "before").read_bytes()
    said = (folder / "first").read_text().splitlines()[-1].replace(f"{mount}/", "")
    expect.equal("the exit statuses, first and then with room", (folder / "status").read_text().split(), ["2", "0"])
    expect.says(
        "it", said, "can't be written: No space left on device; what was recorded is safe: make room, then envkit"
    )
    expect.that(before.endswith(b"}\n"), "a half line was left")
    expect.that(before.count(b'"event": "sample"') > 0, "there was no room for any sample")
    expect.that(place.whole_lines().startswith(before), "what was recorded before is gone")
    expect.wrong += place.incomplete()
    return Finding(
        "the run's folder is a file system of 32 KiB, which fills up; then it was enlarged and the run resumed",
        said, f"the {before.count(b'sample')} samples that had room; {len(place.samples())} in the end, each once",
        expect.wrong,
    )  # fmt: skip


def full_disk_while_exporting(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    place.measured(samples=4)
    mount = folder / "mount"
    mount.mkdir()
    export = ["export", place.run, "--format", "csv", "--output", mount / "out.csv"]
    script = f"""
        mount -t tmpfs -o size=4k none {mount} || exit 99
        echo as it was >{mount}/out.csv
        {_shell(place, export)} >/dev/null 2>{folder}/said
        echo $? >{folder}/status
        cp -r {mount} {folder}/after"""
    _as_root_of_a_namespace(script)
    said = (folder / "said").read_text().strip().replace(f"{mount}/", "")
    expect.equal("the exit status", (folder / "status").read_text().strip(), "2")
    expect.says("it", said, "out.csv: can't be written: No space left on device; out.csv is unchanged")
    found = {file.name: file.read_text() for file in (folder / "after").iterdir()}
    expect.equal("what is in the folder", found, {"out.csv": "as it was\n"})
    return Finding(
        "export --output overwrites a file on a full disk",
        said,
        "the file as it was, and no other file",
        expect.wrong,
    )


def clock_goes_back(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    place.ask(*place.bench(), prelude=BACKWARDS)
    place.record.write_bytes(b"".join(place.record.read_bytes().splitlines(keepends=True)[:9]))
    before = place.whole_lines()
    resumed = place.ask(*place.resume(), prelude=BACKWARDS)
    expect.equal("the status of --resume", resumed.status, 0)
    expect.that(place.whole_lines().startswith(before), "what was recorded before is gone")
    moments = [event["time"] for event in place.events()]
    back = sum(later < earlier for earlier, later in itertools.pairwise(moments))
    expect.equal("how often the clock went back", back, len(moments) - 2)  # it was right when the second runner began
    expect.wrong += [*_read_by_all(place), *place.incomplete()]
    return Finding(
        f"the clock goes back an hour at each event, {back} times, before and after a resume",
        f"ended: {place.events()[-1]['reason']}; report, history and export as usual",
        f"{len(place.samples())} samples in the order in which they were measured", expect.wrong,
    )  # fmt: skip


def two_runners(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder, delay_s=3.0)
    first = place.start(place.bench("--blocks", 12))  # which takes longer than the others need to be refused
    try:
        until(lambda: place.events() or first.poll() is not None)
        second, third = place.ask(*place.bench(), temporary="a"), place.ask(*place.resume(), temporary="b")
        elsewhere = place.ask(*place.bench("--output", folder / "other"))
        expect.that(first.poll() is None, "the first runner had ended")
    finally:
        place.hurry()
        done = place.answer(first)
    for answer in (second, third):
        _refused(
            expect,
            answer,
            "run/record.jsonl: another envkit process is writing to it; wait for it, or give another folder",
        )
    _refused(expect, elsewhere, "another measurement runs on this machine (process ")
    expect.equal("the status of the first", done.status, 0)
    expect.wrong += place.incomplete()
    return Finding(
        "during a run: bench and --resume with its folder, and bench with another folder",
        f"{second.last}; on the other folder: {elsewhere.last}",
        f"the first run came to its end: {len(place.samples())} samples, each once", expect.wrong,
    )  # fmt: skip


def several_at_the_same_moment(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    started = [place.start(place.bench(), temporary=f"tmp{number}") for number in range(AT_ONCE)]
    answers = [place.answer(process) for process in started]
    expect.equal("the exit statuses", sorted(answer.status for answer in answers), [0] + [2] * (AT_ONCE - 1))
    refused = [answer for answer in answers if answer.status == 2]
    for answer in refused:
        _refused(expect, answer, "run/record.jsonl: ")
    expect.wrong += place.incomplete()
    return Finding(
        f"{AT_ONCE} commands started at the same moment with the same new folder",
        " / ".join(sorted({answer.last for answer in refused})),
        f"one of them measured: {len(place.samples())} samples, each once", expect.wrong,
    )  # fmt: skip


def other_schema(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    content = place.measured(samples=4)
    other = content.replace(b'"schema": %d' % SCHEMA, b'"schema": 99', 1)
    place.record.write_bytes(other)
    commands = (["report", place.run], place.resume(), ["export", place.run, "--format", "csv"])
    answers = [place.ask(*command) for command in commands]
    for answer in answers:
        _refused(expect, answer, f"(schema 99), and this version of envkit reads schema {SCHEMA}; measure again")
    listed = place.read("history", folder)
    expect.equal("the status of history", listed.status, 0)
    expect.says(
        "history", listed.output, "not read: run: record.jsonl: this record has a later format (schema 99), and"
    )
    expect.equal("the record", place.record.read_bytes() == other, True)
    return Finding(
        "the record's first line says schema 99; report, --resume, export and history read it",
        answers[0].last, "the record, byte for byte", expect.wrong,
    )  # fmt: skip


def unknown_event(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    lines = place.measured(samples=4).splitlines(keepends=True)
    shown = place.read("report", place.run).output
    unknown = b'{"event": "eclipse", "time": "noon", "block": {"of": "what"}, "seconds": null}\n'
    place.record.write_bytes(b"".join([*lines[:-1], unknown, lines[-1]]))
    expect.equal("the report", place.read("report", place.run).output, shown)
    expect.wrong += _read_by_all(place)
    resumed = place.ask(*place.resume())
    expect.equal("the status of --resume", resumed.status, 0)
    expect.that(unknown in place.whole_lines(), "the unknown event is gone")
    expect.wrong += place.incomplete()
    return Finding(
        "an event of an unknown kind is in the record",
        "the same report as without it; resumed and came to its end",
        f"the unknown event too; {len(place.samples())} samples, each once", expect.wrong,
    )  # fmt: skip


def garbage_in_the_middle(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    lines = place.measured(samples=4).splitlines(keepends=True)
    damaged = b"".join([*lines[:-1], b"\xff\xfe\x00 no text \x80\n", lines[-1]])
    place.record.write_bytes(damaged)
    words = f"run/record.jsonl:{len(lines)}: damaged line; remove it to read the rest"
    answers = [place.read("report", place.run), place.ask(*place.resume())]
    for answer in answers:
        _refused(expect, answer, words)
    expect.equal("the record", place.record.read_bytes() == damaged, True)
    _do(f"sed -i {len(lines)}d {place.record}")
    expect.equal("the record without the line", place.record.read_bytes() == b"".join(lines), True)
    expect.equal("the status of --resume", place.ask(*place.resume()).status, 0)
    expect.wrong += place.incomplete()
    return Finding(
        "a line of bytes that are not text is in the record; then it was removed, as the message says, and the run "
        "resumed",
        answers[0].last, f"the record, byte for byte, until then; {len(place.samples())} samples in the end, each once",
        expect.wrong,
    )  # fmt: skip


def keys_missing(folder: Path) -> Finding:
    expect = Expectations()
    place = Place(folder)
    content = place.measured(samples=4)
    lacking = content.replace(b'"study": ', b'"story": ', 1)
    place.record.write_bytes(lacking)
    words = "run/record.jsonl: an event lacks 'study'; the record can't be used"
    commands = (["report", place.run], ["export", place.run, "--format", "csv"])
    answers = [place.ask(*command) for command in commands]
    for answer in answers:
        _refused(expect, answer, words)
    # nobody goes on with a record that was edited, whatever it lacks
    _refused(expect, place.ask(*place.resume()), "--resume run: the record lacks your seal")
    expect.says("history", place.read("history", folder).output, "not read: run: record.jsonl: an event lacks 'study'")
    expect.equal("the record", place.record.read_bytes() == lacking, True)
    return Finding(
        "the record's first line has no plan; report, --resume, export and history read it",
        answers[0].last, "the record, byte for byte", expect.wrong,
    )  # fmt: skip


def zeros_at_the_end(folder: Path) -> Finding:
    """What some file systems leave at the end of a file that was being written when the power failed."""
    expect = Expectations()
    place = Place(folder)
    content = place.measured(samples=4)
    place.record.write_bytes(content + b"\x00" * 4096)
    expect.wrong += _read_by_all(place)
    resumed = place.ask(*place.resume())
    expect.equal("the status of --resume", resumed.status, 0)
    expect.that(place.whole_lines().startswith(content), "what was recorded before is gone")
    expect.that(b"\x00" not in place.record.read_bytes(), "zeros are left")
    expect.wrong += place.incomplete()
    return Finding(
        "4,096 zero bytes at the end of the record, as a power cut can leave them",
        "read as if they were absent; resumed and came to its end",
        f"all lines before; {len(place.samples())} samples in the end, each once", expect.wrong,
    )  # fmt: skip


def _read_by_all(place: Place) -> list[str]:
    """What is wrong with how reports, lists and exports take the record of the run."""
    expect = Expectations()
    for command, *options in READERS:
        answer = place.read(command, place.run, *options)
        expect.equal(f"the status of {command}", (answer.status, answer.messages), (0, []))
        expect.that("not read" not in answer.output, f"{command}: {answer.output}")
    rows = json.loads(answer.output)
    measured = [(event["block"], event["arm"]) for event in place.samples()]
    expect.equal("what is exported", [(row["block"], row["arm"]) for row in rows], measured)
    return expect.wrong


def _refused(expect: Expectations, answer: Answer, words: str) -> None:
    expect.equal("how it ended", (answer.status, answer.output, len(answer.messages)), (2, "", 1))
    expect.says("it", answer.last, words)


def _shell(place: Place, arguments: list[object]) -> str:
    (place.folder / "tmp").mkdir(exist_ok=True)
    variables = [f"{name}={value}" for name, value in place.environment().items()]
    return shlex.join(["env", "-i", *variables, sys.executable, "-m", "envkit", *map(str, arguments)])


def _as_root_of_a_namespace(script: str) -> None:
    """Run where file systems may be mounted that nobody else sees. Raises CantPlant where that is not allowed."""
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if "unshare" in result.stderr or result.returncode == 99:
        raise CantPlant(f"no user and mount namespaces: {result.stderr.strip()}")
    assert result.returncode == 0, result.stderr


def _do(command: str) -> None:
    subprocess.run(shlex.split(command), check=True)


FAULTS = (
    Fault("kills", f"kill -9 at {KILLS} random moments", kills),
    Fault("killed-before-the-first-line", "killed before the first line", killed_before_the_first_line),
    Fault("cut-at-every-byte", "last line cut short", cut_at_every_byte),
    Fault("zeros-at-the-end", "zeros at the end", zeros_at_the_end),
    Fault("full-disk", "full disk", full_disk),
    Fault("full-disk-while-exporting", "full disk while exporting", full_disk_while_exporting),
    Fault("clock-goes-back", "clock jumps back", clock_goes_back),
    Fault("two-runners", "two measurements in one folder", two_runners),
    Fault("several-at-the-same-moment", "several measurements started at once", several_at_the_same_moment),
    Fault("other-schema", "record of another version", other_schema),
    Fault("unknown-event", "event of a newer version", unknown_event),
    Fault("keys-missing", "record without a required field", keys_missing),
    Fault("garbage-in-the-middle", "bytes that are not text", garbage_in_the_middle),
)
