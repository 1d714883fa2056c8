"""``envkit completion``: what bash completes once it has read the script, and that other shells can read theirs."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from envkit.cli import COMMANDS
from envkit.profiles import profile


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The script as a file, made once."""
    import contextlib
    import io

    from envkit.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["completion", "bash"]) == 0
    path = tmp_path_factory.mktemp("completion") / "envkit.bash"
    path.write_text(printed.getvalue())
    return path


@pytest.fixture
def completed(script):
    """What bash offers for the last of these words."""

    def run(*words: str) -> list[str]:
        line = " ".join(map(shlex.quote, ["envkit", *words]))
        asked = (
            f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _envkit; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        result = subprocess.run(
            ["bash", "--norc", "--noprofile", "-c", asked], capture_output=True, text=True, timeout=60, check=True
        )
        assert result.stderr == ""
        return result.stdout.split()

    return run


def test_commands(completed):
    assert set(completed("")) == {*COMMANDS, "help"}
    assert completed("ben") == ["bench"]
    assert completed("help", "exp") == ["explain", "export"]


@pytest.mark.parametrize("command", ["bench", "exec", "show", "env", "doctor", "ablate", "matrix"])
def test_names_of_profiles(completed, command):
    assert set(completed(command, "jemalloc")) == {one for one in profile.names() if one.startswith("jemalloc")}
    assert set(completed("bench", "intel-omp", "jemalloc-r")) == {"jemalloc-retain", "jemalloc-retain-mkl"} & {
        *profile.names()
    }


def test_options_and_their_values(completed):
    assert completed("bench", "intel-omp", "--bud") == ["--budget"]
    assert "--seed" in completed("bench", "--")
    assert completed("bench", "--engine", "app") == ["apptainer"]
    assert completed("bench", "--workload", "seg") == ["segmentation"]
    assert completed("export", "--format", "") == ["csv", "json", "parquet", "openmetrics"]
    assert completed("env", "--format", "docker") == ["docker", "dockerfile"]
    assert completed("history", "--verdict", "fa") == ["faster", "failed"]
    assert completed("explain", "KMP_BLOCK") == ["KMP_BLOCKTIME"]


def test_actions_of_baseline(completed):
    assert completed("baseline", "") == ["save", "check", "diff", "list"]
    assert completed("baseline", "check", "--thr") == ["--threshold"]
    assert completed("baseline", "save", "--thr") == []


def test_a_users_own_command_is_theirs(completed, tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    assert "train.py" in completed("exec", "intel-omp", "--", "python", "tra")


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_can_read_theirs(cli, tmp_path, shell, check):
    printed = cli("completion", shell).stdout
    assert "intel-omp" in printed
    assert "budget" in printed
    path = tmp_path / "script"
    path.write_text(printed)
    if shutil.which(shell):
        subprocess.run([*check, path], check=True, timeout=60)


def test_an_unknown_shell(refused):
    assert refused("completion", "fihs") == (
        "envkit: SHELL: no such value 'fihs'; did you mean 'fish'?; choose bash, zsh or fish"
    )
