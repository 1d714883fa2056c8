from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from envkit.common.errors import InputError
from envkit.profiles.formats import shells
from envkit.profiles.messages import NotExpressible
from hypothesis import given, settings

from tests.profiles.formats.resolving import TEXTS, VALUES, environment_of, resolved
from tests.refusals import refusal

SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("bash", "zsh", "dash")
]
# Control characters but tabs and line breaks.
CONTROL = {chr(code) for code in (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0))}
EXAMPLES = settings.default.max_examples // 4  # each is a shell's start, and has a dozen values


def evaluated(shell, text, names):
    """The variables that ``text`` sets, in the shell as it is without start-up files."""
    start = {"bash": ["--norc"], "zsh": ["-f"], "dash": []}[shell]
    seen = environment_of(shell, *start, "-c", 'eval "$1"; exec env -0', shell, text)
    return {name: seen[name] for name in names if name in seen}


@pytest.mark.parametrize("shell", SHELLS)
@given(VALUES)
@settings(max_examples=EXAMPLES)
def test_any_value_survives_eval(shell, variables):
    assert evaluated(shell, shells.shell(resolved(variables)), variables) == variables


@pytest.mark.parametrize("shell", SHELLS)
def test_what_contradicts_the_profile_is_gone(shell, monkeypatch):
    given = {"KMP_AFFINITY": "none", "MKL_DYNAMIC": "false", "HARMLESS": "yes"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    text = shells.shell(resolved({"A": "1"}, stray=("KMP_AFFINITY", "MKL_DYNAMIC")))
    assert evaluated(shell, text, ["A", *given]) == {"A": "1", "HARMLESS": "yes"}


@pytest.mark.parametrize("shell", SHELLS[:2])
def test_an_interactive_shell_takes_the_comments_too(shell, tmp_path):
    """zsh knows none in what is typed (INTERACTIVE_COMMENTS), but in what is evaluated."""
    (tmp_path / "text").write_text(shells.shell(resolved({"A": "it's"})))
    start = {"bash": ["--norc"], "zsh": ["-f"]}[shell]
    typed = 'eval "$(cat text)"\nenv -0 > seen\n'
    result = subprocess.run(
        [shell, *start, "-i"], cwd=tmp_path, input=typed, capture_output=True, text=True, check=False
    )
    assert "\0A=it's\0" in f"\0{(tmp_path / 'seen').read_text()}", result
    assert "not found" not in result.stderr


@pytest.mark.parametrize("shell", SHELLS)
@given(TEXTS)
@settings(max_examples=EXAMPLES)
def test_nothing_in_a_comment_is_evaluated(shell, name):
    text = shells.shell(resolved({"A": "1"}, profile=f"x\nexport B=2; {name}", prefix=[name], place=name, host=name))
    assert evaluated(shell, text, ["A", "B"]) == {"A": "1"}


def test_the_comments_say_what_it_is_for_and_what_to_do():
    text = shells.shell(resolved({"A": "1"}, prefix=["numactl", "-l", "a b"], numerics="may-differ"))
    assert text.splitlines() == [
        "# profile mine, resolved for 4 usable CPUs on 2 cores of here (a CPU); local python",
        "# start your commands with: numactl -l 'a b'",
        "# numerics may differ from those without this profile",
        "export A=1",
    ]


def test_one_is_not_plural():
    heading = shells.shell(resolved(usable_cpus=1, physical_cores=1))
    assert "for 1 usable CPU on 1 core of here" in heading


@given(VALUES)
@settings(max_examples=EXAMPLES)
def test_a_batch_script_runs_its_arguments_with_any_values(variables):
    script = shells.sbatch(resolved(variables, prefix=["env", "PREFIX=a 'b' $HOME"]))
    seen = environment_of("bash", "--norc", "-c", script, "script", "env", "-0")
    assert {**variables, "PREFIX": "a 'b' $HOME"}.items() <= seen.items()


@pytest.mark.parametrize(
    ("variables", "facts", "options"),
    [
        # as many CPUs as the profile has threads, and where two are a core, one thread on each
        ({"OMP_NUM_THREADS": "2"}, {}, ["--cpus-per-task=2", "--hint=nomultithread"]),
        ({"OMP_NUM_THREADS": "4"}, {}, ["--cpus-per-task=4"]),
        ({"OMP_NUM_THREADS": "2"}, {"smt": False, "usable_cpus": 2}, ["--cpus-per-task=2"]),
        ({"OMP_NUM_THREADS": "3,2"}, {"physical_cores": 8, "usable_cpus": 8, "smt": False}, ["--cpus-per-task=3"]),
        ({}, {}, ["--cpus-per-task=4"]),
        ({"OMP_NUM_THREADS": "many"}, {}, ["--cpus-per-task=4"]),
        ({}, {"gpus": 2}, ["--cpus-per-task=4", "--gpus=2"]),
        ({"OMP_NUM_THREADS": "2"}, {"ranks": 2}, ["--cpus-per-task=4"]),
        ({"OMP_NUM_THREADS": "1"}, {"gpus": 1, "beside": 2}, ["--cpus-per-task=2", "--gpus=1"]),
    ],
)
def test_a_batch_script_asks_for_what_the_profile_was_resolved_for(variables, facts, options):
    lines = shells.sbatch(resolved(variables, **facts)).splitlines()
    assert lines[0] == "#!/bin/bash"
    assert [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")] == options
    # Slurm reads no options after the first command
    first = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    assert not any(line.startswith("#") for line in lines[first:])


def test_a_batch_script_takes_away_what_its_job_was_given(monkeypatch):
    """But for what says where things are; sbatch passes on the variables of the shell that submits."""
    given = {"KMP_AFFINITY": "none", "LD_PRELOAD": "", "CUDA_VISIBLE_DEVICES": "1", "name": "n", "OMP_NUM_THREADS": "7"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    script = shells.sbatch(resolved({"OMP_NUM_THREADS": "2"}))
    result = subprocess.run(
        ["bash", "--norc", "-uc", script, "script", "env"], capture_output=True, text=True, check=False
    )
    seen = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    kept = {"CUDA_VISIBLE_DEVICES": "1", "name": "n", "OMP_NUM_THREADS": "2"}
    assert {name: seen[name] for name in given if name in seen} == kept
    unset = {line.removeprefix("unset, because it could change the outcome: ") for line in result.stderr.splitlines()}
    assert unset == given.keys() - {"CUDA_VISIBLE_DEVICES", "name"}


def test_a_batch_script_without_a_command_fails():
    result = subprocess.run(
        ["bash", "--norc", "-c", shells.sbatch(resolved()), "script"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (2, "use: sbatch THIS_FILE python train.py\n")


@pytest.mark.parametrize("form", [shells.shell, shells.sbatch, shells.apptainer])
def test_what_is_for_each_of_several_ranks_is_said(form):
    said = "# these are the settings of each of 2 ranks: start them together with torchrun --nproc-per-node 2"
    assert [said in form(resolved({"A": "1"}, ranks=ranks)) for ranks in (1, 2)] == [False, True]


def test_a_definition_says_how_its_image_gets_gpus():
    said = "    # start the container with the machine's GPUs: apptainer run --nv"
    assert [said in shells.apptainer(resolved({"A": "1"}, gpus=gpus)).splitlines() for gpus in (0, 1)] == [False, True]


def test_a_definition_says_how_nothing_else_comes_in():
    """Apptainer puts all of the caller's variables inside, and a profile's win over them only where it sets them."""
    said = "    # start it with apptainer run --cleanenv, or other variables of your shell are set inside too"
    assert said in shells.apptainer(resolved({"A": "1"})).splitlines()


@given(VALUES)
@settings(max_examples=EXAMPLES)
def test_a_definition_sets_any_value_that_is_not_refused(variables):
    refused = any(CONTROL & {*value} for value in variables.values())
    try:
        text = shells.apptainer(resolved(variables, prefix=["a%b{{c", "'"]))
    except InputError:
        assert refused
        return
    assert not refused
    # Apptainer replaces {{ ... }}, and takes a line that begins with % for a section
    assert "{{" not in text
    assert re.findall(r"^\s*%.*", text, re.MULTILINE) == ["%environment", "\n%runscript"]
    _, exports, script = re.split(r"^%(?:environment|runscript)$", text, flags=re.MULTILINE)
    assert evaluated("dash", exports, variables) == variables
    assert script == "\n    exec 'a''%b{''{c' ''\"'\"'' \"$@\"\n"


@pytest.mark.parametrize("value", ["a\rb", "\x07", "\x80", "\x81", "\x7f"])
def test_a_definition_refuses_what_apptainers_shell_changes(value):
    found = refusal(shells.apptainer, resolved({"X": value}))
    assert isinstance(found, NotExpressible)
    assert (found.profile, found.format, found.name) == ("mine", "apptainer", "X")


def test_a_definition_has_no_run_script_where_no_prefix_is_needed():
    assert "%runscript" not in shells.apptainer(resolved({"X": "1"}))
