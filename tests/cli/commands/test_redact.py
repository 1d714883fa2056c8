"""A canary: secrets that stand in no file of a run, and names that are in nothing that was written with --redact."""

from __future__ import annotations

import json
import platform
import re

import pytest
from envkit.bench import record
from envkit.bench.record import Record
from envkit.cluster.slurm.node_status import Outcome
from envkit.messages import Printed
from envkit.report.redaction import Redaction
from envkit.worker.messages.cpus import BoundByGroup, SetByParent

from tests import records
from tests.cluster.fleet.nodes import fleet
from tests.cluster.slurm.conftest import settings
from tests.report.kinds import KINDS
from tests.report.planted import failed
from tests.simulation import times

KEPT, OWN, PROXY = "k3pt-canary-7f3a9", "0wn-canary-51c2d", "https://jane:pr0xy-canary@proxy.example.org:3128"
CREDENTIALS = "https://bob:url-canary-88@data.example.org/set"
HOST, USER = "cluster-7.example.org", "jane.roe"
SURROUNDINGS = {"MY_TOKEN": KEPT, "OMP_STACKSIZE": f"{KEPT}M", "API_KEY": OWN, "HTTPS_PROXY": PROXY}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Measure as a user of a name and a home, on a host of a name."""
    folder = tmp_path / "home" / USER
    folder.mkdir(parents=True)
    for name, value in {"HOME": str(folder), "LOGNAME": USER, **SURROUNDINGS}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(platform, "node", lambda: HOST)
    return folder


@pytest.fixture
def measured(home, own, simulation, run_folder, tmp_path):
    """The folder of a run of which a worker of ``mine`` failed, and said all that it knew."""
    said = f"on {HOST} {USER} reads {home}/set and {tmp_path}/x of {CREDENTIALS}: {KEPT}\n"
    simulation.worker("mine", seconds=times(0.5), stderr=said, does="exit", status=3, **{"from": 7})
    training = ("python", "train.py", "--url", CREDENTIALS, f"--weights={home}/weights.pt", "--name", "secretproject")
    (tmp_path / "mine").mkdir()
    own("--keep-env", "MY_TOKEN", "--keep-env", "OMP_STACKSIZE", "--metric", "step", blocks=9, training=training)
    return run_folder


FORMATS = {
    "terminal": lambda run, to: ("report", run),
    "details": lambda run, to: ("report", run, "--details"),
    "json": lambda run, to: ("report", run, "--json"),
    "markdown": lambda run, to: ("report", run, "--markdown"),
    "page": lambda run, to: ("report", run, "--html", to),
    "csv": lambda run, to: ("export", run, "--format", "csv"),
    "rows": lambda run, to: ("export", run, "--format", "json"),
    "openmetrics": lambda run, to: ("export", run, "--format", "openmetrics"),
    "history": lambda run, to: ("history", run),
    "history-json": lambda run, to: ("history", run.parent, "--json"),
}  # fmt: skip


def printed(cli, command, to, *options):
    result = cli(*command, *options).ended(0)
    return result.stdout + (to.read_text() if to.exists() else "")


def test_secrets_of_the_caller_are_in_no_file_of_a_run_and_in_no_report(measured, cli, tmp_path, simulation):
    files = {path: path.read_bytes() for path in measured.parent.rglob("*") if path.is_file()}
    files.pop(simulation.folder / "config.json")  # what the simulated worker is to say
    files.pop(simulation.folder / "starts.jsonl")  # what it was given
    assert any(path.name == "record.jsonl" for path in files)
    for secret in (KEPT, OWN, "pr0xy-canary"):
        assert [path for path, content in files.items() if secret.encode() in content] == [], secret
    for name, command in FORMATS.items():
        to = tmp_path / f"{name}.html"
        content = printed(cli, command(measured, to), to)
        assert [one for one in (KEPT, OWN, "pr0xy-canary") if one in content] == [], name


def test_no_request_of_a_worker_has_them(measured, simulation):
    started = [json.dumps(start["work"]) for start in simulation.starts(all=True)]
    assert started
    assert [one for one in started if KEPT in one or OWN in one or "pr0xy-canary" in one] == []


def test_redacted_nothing_tells_who_measured_and_where(measured, cli, tmp_path, home):
    names = (HOST, "cluster-7", USER, "jane", str(home), str(tmp_path), tmp_path.name, "url-canary", "secretproject")
    for name, make in FORMATS.items():
        to = tmp_path / f"{name}.html"
        command = make(measured, to)
        plain, redacted = (re.sub(r"\s+", " ", printed(cli, command, to, *more)) for more in ((), ("--redact",)))
        assert str(tmp_path) in plain or "example.org" in plain, f"{name}: there would be nothing to find"
        assert [one for one in (*names, "weights.pt", "example.org") if one in redacted] == [], name


def test_numbers_profiles_and_settings_stay(measured, cli):
    plain, redacted = (
        json.loads(cli("report", measured, "--json", *more).stdout) for more in ((), ("--redact",))
    )  # fmt: skip
    assert plain["headline"]["code"] == redacted["headline"]["code"]
    for key in ("comparisons", "measured", "design", "reference"):
        assert plain[key] == redacted[key], key
    assert list(plain) == list(redacted)


def test_fleet_report_redacted(cli, tmp_path):
    place = fleet(tmp_path / "fleet", 12, slower={"n02": 0.3})
    page, metrics = tmp_path / "page.html", tmp_path / "fleet.prom"
    shown = cli("fleet", "report", place, "--redact").stdout
    document = cli("fleet", "report", place, "--redact", "--json").stdout
    cli("fleet", "report", place, "--redact", "--html", page, "--prometheus", metrics)
    for content in (shown, document, page.read_text(), metrics.read_text()):
        assert not re.search(r"\bn0\d\b", content)
        assert tmp_path.name not in content
    (slow,) = [one["node"] for one in json.loads(document)["kinds"][0]["nodes"] if one["verdict"] == "slow"]
    assert re.fullmatch(r"HOST\d+", slow)
    assert f"{slow} " in shown


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_report_can_be_redacted(cli, tmp_path, kind):
    folder = records.write(tmp_path / "run", KINDS[kind]())
    result = cli("report", folder, "--details", "--redact").ended(0)
    assert tmp_path.name not in result.stdout
    headline = cli("report", folder).stdout.splitlines()[0]
    assert result.stdout.splitlines()[0] == headline


def test_a_submission_of_several_nodes_redacted(cli, tmp_path, home):
    folder = tmp_path / "submitted"
    Record.create(folder).append("submit", schema=record.SCHEMA, settings=settings().to_json())
    for name in ("gpu-node1", "gpu-node2"):
        place = folder / name
        Outcome("17", 1.0, 2.0, 0).write(records.write(place, records.run_events(ended="complete")))
    Outcome("17", 1.0, 2.0, 2, Printed(f"gpu-node3: {home}/x is not there")).write(_made(folder / "gpu-node3"))
    printed = f"Traceback of {USER}\nno {home}/set on gpu-node4\n"
    place = records.write(folder / "gpu-node4", failed(records.run_events(), stderr=printed))
    Outcome("17", 1.0, 2.0, 1).write(place)
    commands = (("report", folder), ("report", folder, "--json"), ("history", tmp_path))
    for command in commands:
        plain, redacted = (cli(*command, *more) for more in ((), ("--redact",)))
        assert "gpu-node1" in plain.stdout, "there would be nothing to find"
        assert "Traceback" in plain.stdout or command != commands[0], "the failed worker's output is part of it"
        for content in (redacted.stdout, redacted.stderr):
            assert [one for one in ("gpu-node", tmp_path.name, USER, "submitted") if one in content] == []


def _made(folder):
    folder.mkdir()
    return folder


def test_a_batch_script_and_a_submission_have_names_alone(cli, tmp_path, home):
    options = ("--keep-env", "MY_TOKEN", "--keep-env", "OMP_STACKSIZE", "--output", tmp_path / "run")
    for more in ((), ("--json",)):
        result = cli("submit", "intel-omp", "--dry-run", *options, *more)
        assert result.returncode == 0, result
        assert "MY_TOKEN" in result.stdout or not more
        assert [one for one in (KEPT, OWN, "pr0xy-canary") if one in result.stdout] == []


# --- texts ---


@pytest.fixture
def redaction(home):
    return Redaction("n17.example.org")


def test_equal_things_stay_equal(redaction):
    first, second = redaction.text("/data/a and /data/b"), redaction.text("/data/b:/data/a")
    one, _, two = first.split()
    assert one != two
    assert second == f"{two}:{one}"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("on n17 and n17.example.org.", "on HOST1 and HOST1."),
        ("cluster-7.other.net and cluster-70", "HOST1 and cluster-70"),
        (f"user {USER}, not {USER}s", f"user USER1, not {USER}s"),
        ("LD_PRELOAD=/opt/x/libjemalloc.so.2", "LD_PRELOAD=PATH1/libjemalloc.so.2"),
        ("/usr/lib/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2"),
        ("1/2 of 3 items/s", "1/2 of 3 items/s"),
        ("see https://u:p@h.example.org/x?y=1 there", "see ADDRESS1 there"),
        ("~/models/x", "PATH1"),
        ("[Errno 2] No such file: '/data/my set/x'", "[Errno 2] No such file: 'PATH1'"),
    ],
)
def test_a_text(redaction, said, shown):
    assert redaction.text(said) == shown


def test_a_path_with_blanks_that_is_the_whole_value(redaction):
    assert redaction.value({"data": "/my own/set"}) == {"data": "PATH1"}


def test_a_user_who_is_called_like_an_engine(monkeypatch):
    monkeypatch.setenv("LOGNAME", "local")
    assert Redaction().value({"engine": "local", "arms": ["local"]}) == {"engine": "local", "arms": ["local"]}


def test_who_gave_a_training_few_threads_or_cpus_is_not_named():
    by = [SetByParent("OMP_NUM_THREADS=1", "python secret_project.py", 7), BoundByGroup("/user.slice/jane")]
    assert Redaction().value(by) == [SetByParent("OMP_NUM_THREADS=1", "PROGRAM1", 7), BoundByGroup("PATH1")]
