"""Every command in a shell block of a page is executed, with stand-ins for what trains, or stands in a table with why.

The commands of a page run in order, in one folder.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from envkit.cli import parsed
from envkit.profiles import profile

from tests.cluster.fleet.nodes import fleet
from tests.conftest import CODE_PATH, Cli
from tests.docs.rules import is_shown, kind_of, shortened, shows_figures
from tests.docs.shell_blocks import FENCE, PAGES, PROJECT, SHELL, Command, blocks, commands, simple_words
from tests.docs.stand_in import FOLDER, GPUS, arrange
from tests.records import BEGUN

# Where other machines share a folder; in tests it is in the current folder.
SHARED = "/shared/"
TRAINING = "import torch\nprint('step 1 loss 2.28 time 14.310 ms')\n"
# A torch with as much as evidence asks for: the real one takes seconds to import.
TORCH = """
class _Tensor:
    def add_(self, number): pass
def zeros(count, device): return _Tensor()
def get_num_threads(): return 1
"""
PROFILE = """\
name: {}
title: A test
why: {{reason: A test., source: here}}
env: {{OMP_NUM_THREADS: 1, OMP_DYNAMIC: 'false'}}
"""
# What stands for a text of a page, where a shell executes it.
TEXTS = {
    ".venv/bin/python images/": f"{sys.executable} {PROJECT}/images/",
    "node1 node2 node3": "node1",
    "bench glibc-retain --output": "bench glibc-retain --data synthetic --blocks 6 --output",
}
PROGRAMS = {
    "envkit": f'exec {sys.executable} -m tests.docs.stand_in "$@"',
    "make": f'exec {shutil.which("make")} --dry-run --no-print-directory --directory {PROJECT} "$@"',
    # the other machine is a folder of this one
    "ssh": 'mkdir -p "$2/tmp" && cd "$2" && TMPDIR=$PWD/tmp exec sh -c "$3"',
    "scp": 'exec cp -r "${2%:*}/${2#*:}" "$3"',
}


@pytest.fixture
def typed(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Typed:
    return Typed(cli, tmp_path, monkeypatch, capfd)


class Typed:
    """A user in a folder with a training, who types one command after the other."""

    def __init__(self, cli: Cli, folder: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.cli, self.patch, self.captured = cli, patch, captured
        self.here, self.stand_ins, programs = folder / "here", folder / "stand-ins", folder / "programs"
        for made in (self.here, programs):
            made.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # of a make that runs these tests
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(self.here))
        patch.setenv(FOLDER, str(self.stand_ins))
        patch.chdir(self.here)
        (self.here / "torch.py").write_text(TORCH)
        (self.here / "train.py").write_text(TRAINING)
        patch.setenv("PYTHONPATH", f"{CODE_PATH}:{self.here}")
        profiles = Path(os.environ["XDG_CONFIG_HOME"]) / "envkit/profiles"
        profiles.mkdir(parents=True)
        for path in (
            self.here / "mine.yaml",
            profiles / "node17-tuned.yaml",
            profiles / f"{profile.tuned_name()}.yaml",
        ):
            path.write_text(PROFILE.format(path.stem))
        self.numbers = iter(range(1, 1000))

    def type(self, command: Command) -> str:
        """Execute a command, and what it would have make execute. Return what it printed; fail if it fails."""
        if kind_of(command.text):
            if command.text.startswith("envkit "):
                parsed(shlex.split(command.text)[1:])
            return ""
        if command.text.startswith("make "):
            return "".join(self.type(each) for each in self._of_make(command))
        simple = simple_words(command.text)
        if simple is None or simple[0][0] != "envkit":
            return self._in_shell(command)
        return self._in_process(command, *simple)

    def _of_make(self, command: Command) -> Iterator[Command]:
        lines = self._in_shell(command).splitlines()
        assert lines, command.place
        for line in lines:
            yield Command(command.page, command.line, line.strip().replace(".venv/bin/envkit", "envkit"))

    def _in_shell(self, command: Command) -> str:
        script = command.text
        for shown, executed in TEXTS.items():
            script = script.replace(shown, executed)
        ended = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=False, timeout=240)
        assert ended.returncode == 0, f"{command.place}\n{ended.stdout}{ended.stderr}"
        return ended.stdout + ended.stderr

    def _in_process(self, command: Command, words: list[str], output: str | None) -> str:
        words = shortened([word.replace(SHARED, "shared/") for word in words[1:]], next(self.numbers))
        for word in words:
            self._plant(word)
        # a refusal is that of a machine without GPUs
        refused = not shows_figures(command) and (command.output or "").startswith("envkit: ")
        gpus = (0 if refused else GPUS) if "cuda" in words else None
        arrange(self.patch, self.stand_ins, gpus, "--against-python" in words)
        printed = self.stand_ins / "printed"
        with printed.open("w+", encoding="utf-8") as stream:
            result = self.cli(*words, cwd=self.here, stream=stream)
        said = self.captured.readouterr().out + printed.read_text()  # that of a user's own command comes first
        assert result.returncode == (2 if refused else 0), f"{command.place}\n{said}"
        if output is not None:
            (self.here / output).write_text(said)
        return said

    def _plant(self, word: str) -> None:
        """Make what a page takes for granted: an image's file, an interpreter, a script, an earlier run, a fleet."""
        path = self.here / word
        if path.exists():
            return
        if re.search(r"^FILE$|\.(sif|sqsh|py)$", word):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        elif word.endswith("/bin/python"):
            path.parent.mkdir(parents=True)
            path.symlink_to(sys.executable)
        elif word == "cnn-xeon":
            self.cli("baseline", "save", word, cwd=self.here)
        elif word.startswith("results/20") and re.search("fleet|submit", word):
            fleet(path, 8, began=BEGUN + 3600 * next(self.numbers))
        elif re.match("results/(20|RUN)", word):
            arrange(self.patch, self.stand_ins)
            options = ("--data", "synthetic", "--blocks", 6, "--output", path)
            assert self.cli("bench", "intel-omp", *options).returncode == 0


def check(page: Path, typed: Typed) -> None:
    """Execute the commands of a page, and compare the output that it shows; ``…`` stands for anything."""
    assert hidden_commands(page) == []
    for command in commands(page):
        said = typed.type(command)
        if command.output is not None and not shows_figures(command):
            assert is_shown(command, said), f"{command.place}\nThe page shows other output than:\n{said}"


def hidden_commands(page: Path) -> list[str]:
    """Return the lines of a page that look like commands, and stand in a block of code that no test executes."""
    other = [line for block in blocks(page) if block.language not in SHELL for line in block.lines]
    indented = [line.strip() for line in FENCE.sub("", page.read_text()).splitlines() if line.startswith("    ")]
    return [line for line in other + indented if re.match(r"(\$ )?(envkit [a-z]|make [a-z]|images/)", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_of_a_page_work(page, typed):
    check(page, typed)


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nenvkit bench intel-omp --budjet 60s -- python train.py\n```\n",
        "```sh\nenvkit bench intel-opm -- python train.py\n```\n",
        "```sh\nenvkit profiles\nenvkit report results/none\n```\n",
        "```sh\nenvkit env glibc-retain --format shel > job.sh\n```\n",
        '```sh\neval "$(envkit env glibc-retain)" && false\n```\n',
        "```sh\nmake bnech PROFILE=intel-omp\n```\n",
        "```sh\nmake bench PROFILE=intel-opm\n```\n",
        "```sh\nenvkit exec glibc-retain --engin docker -- python train.py\n```\n",
        "```console\n$ envkit explain KMP_BLOCKTIME\nKMP_BLOCKTIME\n…\ndefault  201 ms\n```\n",
        "```console\n$ envkit bench gpu-tf32 --data synthetic\nenvkit: profile 'gpu-tf32' is welcome\n```\n",
        "```sh\nenvkit env glibc-retain\n```\n\n```bash\nexport GLIBC_TUNABLES=none\n```\n",
        "```text\nenvkit bench intel-omp\n```\n",
        "    make bench PROFILE=intel-omp\n",
    ],
)
def test_a_page_with_a_fault_fails(text, typed, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        check(page, typed)


def test_the_call_from_python_works(typed, capfd):
    """It runs with three blocks instead of five minutes."""
    (script,) = (block for block in blocks(PROJECT / "docs/own-script.md") if block.lines[0] == "import envkit")
    text = "\n".join(script.lines)
    assert 'budget="5m"' in text
    arrange(typed.patch, typed.stand_ins)
    exec(text.replace('budget="5m"', "blocks=3"), {})
    first, *report = capfd.readouterr().out.splitlines()
    assert first.startswith("report.")
    assert report[0].startswith(("NO ", "SAME"))


def test_the_tutorial_s_training_trains(tmp_path):
    (script,) = (block for block in blocks(PROJECT / "docs/tutorial.md") if block.language == "python")
    text = "\n".join(script.lines)
    (tmp_path / "train.py").write_text(text.replace("range(200)", "range(2)"))
    ended = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert re.fullmatch(r"step 0: loss \d\.\d{4}\nstep 1: loss \d\.\d{4}\n", ended.stdout), ended
