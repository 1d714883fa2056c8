from __future__ import annotations

import json
import subprocess
import sys

import pytest
from envkit.engines.messages import ExitStatus

from tests import records
from tests.cli.commands.conftest import words
from tests.conftest import PROJECT
from tests.simulation import times


@pytest.mark.parametrize("options", [(), ("--details",), ("--redact",)])
def test_a_report_from_a_folder_that_was_removed(cli, tmp_path, monkeypatch, options):
    folder = records.write(tmp_path / "run", records.run_events(blocks=12))
    elsewhere, removed = tmp_path / "elsewhere", tmp_path / "removed"
    elsewhere.mkdir()
    printed = cli("report", folder, *options, cwd=elsewhere).stdout
    assert "envkit exec " in printed
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    result = cli("report", folder, *options)
    assert (result.returncode, result.stdout, result.stderr) == (0, printed, "")


@pytest.mark.parametrize(
    ("architecture", "hypervisor", "said"),
    [
        ("x86_64", None, "on 2 cores, bare metal"),
        ("x86_64", "KVM", "on 2 cores, KVM"),
        ("aarch64", None, "on 2 cores system"),  # whose processors tell nobody
    ],
)
def test_what_is_known_of_a_virtual_machine(cli, tmp_path, architecture, hypervisor, said):
    events = records.run_events()
    seen = events[0]["engines"]["local"]["inspection"]["fingerprint"]
    seen |= {"architecture": architecture, "hypervisor": hypervisor}
    assert said in words(cli("report", records.write(tmp_path / "run", events), "--details").stdout)


def test_details_add_machine_settings_evidence_and_commands(bench, simulation, instant, cli, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    expect = "expect: {openmp.runtime: gnu, openmp.max_threads: 2}\n"
    short = bench("mine", "--budget", "50s", text=expect, OMP_NUM_THREADS="3").stdout
    result = cli("report", run_folder, "--details").ended(0)
    assert result.stdout.startswith(short)
    more = " ".join(result.stdout.removeprefix(short).split())
    for text in (
        "not passed on from your environment: OMP_NUM_THREADS",
        "profile mine: A test",
        "machine Simulated CPU (model 1), 4 usable CPUs on 2 cores, bare metal",
        "system Simulated Linux 1, Linux 6.1.0, glibc 2.36",
        "engine local 6.1: /sim/bin/python, Python 3.11.7, torch 2.13.0",
        "workload cnn, 3 steps after",
        "total all samples together: 2.0",
        "design 20 blocks planned, analyses after 8, 10, 12, 14, 16, 18, 20: group-sequential at 5%",
        "mine: in effect expected seen openmp.runtime gnu gnu ok openmp.max_threads 2 2 ok SIMULATED=mine",
        "ended precise enough",
        "by hand (one sample each)",
        f"SIMULATED=mine worker - < {run_folder}/requests/",
    ):
        assert text in more, text
    # a line that is to be copied is not broken; all others fit
    copied = ("Use  ", "Details ", "  env -i ", "options ", "          find the cause: ")
    assert [
        line for line in result.stdout.splitlines() if len(line.rstrip()) > 80 and not line.startswith(copied)
    ] == []


def test_details_warn_of_packages_that_were_not_verified(bench, simulation, instant, cli, run_folder):
    simulation.inspection(unverified_packages="torch.whl was installed without being verified")
    assert bench("mine", "--blocks", 1).returncode == 0
    details = cli("report", run_folder, "--details").stdout
    assert "UNVERIFIED package: torch.whl was installed without being verified" in details


def test_a_run_without_any_sample(bench, simulation, instant, cli, run_folder):
    simulation.worker("baseline", does="exit", status=3)
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    for option in ([], ["--details"]):
        assert cli("report", run_folder, *option).returncode == 0
    document = json.loads(cli("report", run_folder, "--json").stdout)
    assert document["measured"] == []
    assert document["comparisons"][0]["verdict"] == "failed"
    (failure,) = document["failures"]
    assert failure["problem"]["text"] == "ended with exit status 3"
    assert failure["problem"]["failure"] == ExitStatus(3).to_json()


@pytest.mark.parametrize(("blocks", "said"), [(0, "a verdict needs 6"), (3, "a verdict needs 6"), (12, "FASTER  mine")])
def test_a_run_without_looks(cli, tmp_path, blocks, said):
    folder = records.write(tmp_path / "run", records.run_events(blocks=blocks))
    short, details, document = (cli("report", folder, *option) for option in ([], ["--details"], ["--json"]))
    assert {(one.returncode, one.stderr) for one in (short, details, document)} == {(0, "")}
    assert said in short.stdout
    assert said in details.stdout
    assert "design    no interim analyses" in details.stdout


@pytest.fixture
def measured(tmp_path):
    """The folder of a run of three arms."""
    arms = (records.arm("baseline"), records.arm("mine"), records.arm("other"))
    return records.write(tmp_path / "measured", records.run_events(*arms))


def test_a_page_pictures_and_markdown_are_written(cli, measured, tmp_path):
    files = [tmp_path / name for name in ("report.html", "report.png", "report.md")]
    options = [part for file in files for part in (f"--{file.suffix[1:].replace('md', 'markdown')}", file)]
    result = cli("report", measured, *options).ended(0, stdout="")
    assert result.stderr.splitlines() == [f"envkit: written: {file}" for file in files]
    page, picture, tables = (file.read_bytes() for file in files)
    assert page.startswith(b"<!DOCTYPE html>")
    assert page.rstrip().endswith(b"</html>")
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert b"| other | 7 |" in tables
    cli("report", measured, *options)
    assert (page, picture, tables) == tuple(file.read_bytes() for file in files)


def test_the_report_can_be_printed_besides(cli, measured, tmp_path):
    file = tmp_path / "report.md"
    result = cli("report", measured, "--markdown", file, "--json")
    assert json.loads(result.stdout)["reference"] == "baseline"
    assert file.exists()


def test_markdown_is_printed_without_a_file(cli, measured, tmp_path):
    result = cli("report", measured, "--markdown").ended(0, stderr="")
    assert result.stdout.startswith("**FASTER  2 of 2 profiles, best ")
    file = tmp_path / "report.md"
    cli("report", measured, "--markdown", file)
    assert file.read_text() == result.stdout


@pytest.mark.parametrize("option", ["--html", "--png", "--markdown"])
@pytest.mark.parametrize(("inner", "reason"), [("none/file", "No such file or directory"), ("", "Is a directory")])
def test_a_file_that_can_not_be_written(refused, measured, tmp_path, option, inner, reason):
    path = tmp_path / inner
    assert refused("report", measured, option, path) == f"envkit: {path}: can't be written: {reason}"


@pytest.mark.parametrize("option", ["--json", "--details"])
def test_only_one_thing_is_printed(cli, measured, option):
    result = cli("report", measured, "--markdown", option)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "leave them out, or give --markdown a FILE" in result.stderr


def test_there_are_no_pictures_of_nothing(refused, cli, tmp_path):
    folder = records.write(tmp_path / "run", records.run_events(blocks=0))
    message = refused("report", folder, "--png", tmp_path / "x.png")
    assert message == f"envkit: --png {tmp_path}/x.png: nothing can be drawn: no sample was measured"
    assert not (tmp_path / "x.png").exists()
    assert cli("report", folder, "--html", tmp_path / "x.html").returncode == 0


def test_drawing_says_nothing_of_caches_settings_and_displays(cli_process, measured, tmp_path):
    (tmp_path / "matplotlibrc").write_text("no.such.setting: 1\n")
    result = cli_process(
        "report", measured, "--png", "x.png", cwd=tmp_path, MPLBACKEND="none", MPLCONFIGDIR="/dev/null/none"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "envkit: written: x.png\n")


def test_what_draws_is_loaded_only_when_asked_for(measured):
    script = (
        "import sys; from envkit.cli import main; main(sys.argv[1:]); print({*sys.modules} & {'matplotlib', 'jinja2'})"
    )
    command = [sys.executable, "-c", script, "report", str(measured)]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "set()"
