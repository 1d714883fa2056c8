"""``--json`` with a failure: one JSON document on stdout, with the message's code and text; the exit status as ever."""

from __future__ import annotations

import json
import subprocess

import pytest
from envkit.cli import COMMANDS
from envkit.common import progress

from tests.conftest import CODE_PATH, command_line
from tests.simulation import times

# By command, what it refuses.
REFUSED = {
    "advise": ["--pid", "1", "--", "true"],
    "bench": ["nosuch"],
    "matrix": ["nosuch"],
    "tune": ["--space", "nosuch"],
    "ablate": ["nosuch"],
    "profiles": ["--nosuch"],
    "show": ["nosuch"],
    "explain": ["NO_SUCH_VARIABLE"],
    "env": ["nosuch"],
    "doctor": ["nosuch"],
    "breakdown": ["nosuch"],
    "report": ["nosuch"],
    "history": ["nosuch"],
    "baseline": ["diff", "nosuch", "neither"],
    "submit": ["nosuch", "--dry-run"],
    "fleet": ["report", "nosuch"],
    "plan": ["nosuch"],
    "compare-engines": ["nosuch", "--engines", "local,docker"],
    "loader-grid": ["nosuch"],
}
# Their standard output is the command's own, what was exported, and a script.
WITHOUT = {"exec", "export", "completion"}


def test_every_command_is_tried():
    assert REFUSED.keys() | WITHOUT == COMMANDS.keys()


@pytest.mark.parametrize("command", REFUSED)
def test_what_is_refused_is_a_document_too(cli, tmp_path, command):
    given = REFUSED[command]
    end = given.index("--") if "--" in given else len(given)
    result = cli(command, *given[:end], "--json", *given[end:], cwd=tmp_path)
    (line,) = result.stderr.splitlines()
    error = json.loads(result.stdout)["error"]
    assert (result.returncode, error["severity"], f"envkit: {error['text']}") == (2, "error", line)
    assert error["code"]


def test_codes_are_those_of_messages(cli):
    answer = json.loads(cli("bench", "intel-omp", "--engine", "dokcer", "--json").stdout)["error"]
    assert (answer["code"], answer["word"], answer["suggestion"]) == ("common.unknown-word", "dokcer", "docker")
    answer = json.loads(cli("bench", "intel-omp", "--keep-env", "NO_SUCH", "--json").stdout)["error"]
    assert (answer["code"], answer["name"]) == ("bench.variable-not-set", "NO_SUCH")


def test_what_belongs_to_the_users_command_is_not_meant(cli):
    assert cli("exec", "nosuch", "--", "echo", "--json").stdout == ""


def test_a_worker_that_fails(bench, simulation):
    simulation.worker("mine", does="exit", status=3)
    result = bench("mine", "--json")
    document = json.loads(result.stdout)
    assert (result.returncode, document["error"]["code"]) == (1, "bench.worker-failed")
    assert document["failures"]


def test_a_profile_that_is_not_in_effect(bench, instant):
    result = bench("mine", "--json", text="expect: {openmp.runtime: intel}\n")
    error = json.loads(result.stdout)["error"]
    assert (result.returncode, error["code"], error["arms"]) == (1, "bench.not-in-effect", ["mine"])


def test_a_run_that_is_interrupted(bench, instant, run_folder, monkeypatch):
    def interrupt(*ignored):
        raise KeyboardInterrupt

    monkeypatch.setattr("envkit.cli.measuring.measure.measure", interrupt)
    result = bench("mine", "--json")
    document = json.loads(result.stdout)
    assert (result.returncode, document["record"]) == (130, str(run_folder))
    assert document["error"]["code"] == "bench.interrupted"
    assert document["error"]["command"].endswith(f"--resume {run_folder}")


def test_a_budget_that_turns_out_too_short(bench, instant, simulation, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--budget", "4.5s", "--warmup-steps", 4, "--json")
    document = json.loads(result.stdout)
    assert (result.returncode, document["record"], document["unfinished"]["fewest"]) == (2, str(run_folder), 6)
    assert document["error"]["text"].startswith("--budget 4.5s is too short")


def test_profiling_whose_worker_fails(cli, simulation, instant, write_profile):
    simulation.worker("mine", does="exit", status=3)
    path = write_profile("mine", "env: {SIMULATED: mine}\n")
    result = cli("breakdown", path, "--python", simulation.python, "--data", "synthetic", "--steps", 3, "--json")
    assert (result.returncode, json.loads(result.stdout)["error"]["text"][:18]) == (1, "a worker of mine: ")


@pytest.mark.parametrize(("fails", "status", "code"), [(True, 1, "bench.worker-failed"), (False, 0, None)])
def test_a_closed_stderr(bench_arguments, simulation, monkeypatch, fails, status, code):
    """Neither messages nor progress take another file for it, and real workers start."""
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)
    if fails:
        simulation.worker("mine", does="exit", status=3)
    command = command_line(*bench_arguments("mine", "--blocks", 1, "--json"))
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    result = subprocess.run(closed, stdout=subprocess.PIPE, text=True, check=False)
    document = json.loads(result.stdout)
    assert (result.returncode, document.get("error", {}).get("code")) == (status, code)


def test_bad_input_with_a_closed_stderr(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command_line("show", "nosuch", "--json")]
    result = subprocess.run(closed, stdout=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, json.loads(result.stdout)["error"]["code"]) == (2, "profiles.unknown-profile")


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_quiet_shows_no_progress(bench, instant, tmp_path, option, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    loud, quiet = bench("mine"), bench("mine", option, "--output", tmp_path / "quiet")
    assert "block 1 of 6 (one sample of each); " in loud.stderr
    assert quiet.stderr == ""
    assert "baseline" in quiet.stdout
