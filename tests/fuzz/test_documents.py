"""Whatever stands in the other JSON files that commands read, they are read or refused in one line."""

from __future__ import annotations

import json

import msgspec
import pytest
from envkit.cluster.fleet import kept
from envkit.cluster.slurm import node_preflight, node_status
from envkit.cluster.slurm.follow import Watch
from envkit.cluster.slurm.node_status import Outcome
from envkit.cluster.slurm.settings import SCHEMA, Settings
from envkit.engines import measured_cores
from envkit.engines.measured_cores import MeasuredCores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.slurm.conftest import settings as submission
from tests.fuzz.test_records import EVENTS, refused
from tests.mutations import damaged, jsons, lines
from tests.records import arm, judge, run_events, write

SUBMISSION = {"schema": SCHEMA, **submission().to_json()}
MEASURED = MeasuredCores("0-3", ("0-1", "2-3"), "2026-11-28")
CORES = {"machine": measured_cores.machine(), "measured": [msgspec.to_builtins(MEASURED)]}
NODE = vars(Outcome("17", 1.0, 2.0, 0, "x", "n[1-2]"))
ROLL_CALL = b"before host 1.5\nanswer node1 2.5 nothing\nafter host 3.5\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all examples, with the folder of a node."""
    made = tmp_path_factory.mktemp("jobs")
    (made / "node1").mkdir()
    return made


@settings(max_examples=200)
@given(content=jsons(SUBMISSION))
def test_a_submission(folder, content):
    (folder / "submit.json").write_bytes(content)
    line = refused(Settings.read, folder)
    if line is None:
        found = Settings.read(folder)
        assert found.sha256
        assert Settings.from_json(json.loads(json.dumps(found.to_json())))
    else:
        assert len(line.splitlines()) == 1


@settings(max_examples=150)
@given(content=jsons(CORES))
def test_measured_cores(tmp_path_factory, content):
    """A damaged file counts as none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cores"))
        measured_cores.keep(MEASURED)
        (path,) = measured_cores._folder().iterdir()
        path.write_bytes(content)
        found = measured_cores.find({0, 3})
        assert found is None or found.count({0, 3}) in (1, 2)


@settings(max_examples=150)
@given(content=jsons(NODE) | lines(EVENTS))
def test_what_a_node_says_of_itself(folder, content):
    """A view looks at it every few seconds: what it can't use it passes over."""
    (folder / "node1/node.json").write_bytes(content)
    (folder / "node1/record.jsonl").write_bytes(content)
    found = node_status.read(folder / "node1")
    assert found is None or isinstance(found.job, str)
    node_status.ended(folder / "node1")
    sight = Watch(folder).look(["node1"], ["17"])["node1"]
    assert isinstance(sight.spent_s + sight.budget_s, float)


@settings(max_examples=100)
@given(content=damaged(ROLL_CALL))
def test_a_roll_call(folder, content):
    (folder / "roll-call-17").write_bytes(content)
    found = node_preflight.read(folder, "17")
    assert found is not None
    for node in ("node1", "none"):
        found.clock_problem(node)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """The report on two nodes, in a folder by itself."""
    records, alone = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("report")
    for name in ("n1", "n2"):
        write(records / name, judge(run_events(arm("baseline"), arm("mine"), blocks=7)))
    nodes, left_out = kept.reading.read(records, None)
    kept.write(alone, nodes, left_out)
    return alone


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_report_on_a_fleet(cli, fleet, data):
    document = json.loads((fleet / kept.FILE_NAME).read_text())
    (fleet / "other.json").write_bytes(data.draw(jsons(document)))
    for files in (("other.json", kept.FILE_NAME), (kept.FILE_NAME, "other.json")):
        result = cli("fleet", "diff", *(fleet / name for name in files))
        assert result.returncode in (0, 1, 2)
        if result.returncode == 2:
            assert len(result.stderr.splitlines()) == 1
