"""What the record of a tuning may decide when it is gone on with."""

from __future__ import annotations

import json
import stat

import pytest
from envkit.bench import dataset, record
from envkit.bench.dataset_messages import OfCommand
from envkit.common import user_key
from envkit.tuning.session import SPACE_FILE

from tests.cli.commands.tune.conftest import written
from tests.instant_engine import replace_engine
from tests.sessions import rewrite

PROGRAM = "/tmp/evil"


@pytest.fixture
def interrupted(tuned, engine, tmp_path):
    """A tuning that was interrupted in its search, and can go on; its folder."""

    def ctrl_c(variables):
        if engine.trained == 30:
            raise KeyboardInterrupt

    engine.misbehave = ctrl_c
    assert tuned().returncode == 130
    engine.misbehave = lambda variables: None
    return tmp_path / "tuning"


def python(program):
    return lambda run: run["study"]["engine_options"].update(python=program)


def prefix(program):
    return lambda run: run["shipped"][0]["environment"].update(prefix=[program])


def baseline(program):
    return lambda run: run["baseline"].update(prefix=[program])


def test_its_users_own_goes_on_by_itself(interrupted, cli, local):
    assert cli("tune", "--resume", interrupted).returncode == 0
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


@pytest.fixture
def pythons(monkeypatch, engine):
    """The interpreters that the local engine is asked for from now on."""
    found = []

    def make(options):
        found.append(options.python)
        return engine

    replace_engine(monkeypatch, "local", make)
    return found


@pytest.mark.parametrize("change", [python, prefix, baseline])
@pytest.mark.parametrize("given", [True, False], ids=["given-again", "alone"])
def test_nothing_that_an_edited_record_names_is_run(
    interrupted, refused, arguments, engine, pythons, monkeypatch, change, given
):
    """Alone it is the command without options, which is not what the record says, either."""
    monkeypatch.setattr(dataset, "find", lambda named, say: dataset.DataSet("synthetic", OfCommand()))
    rewrite(interrupted, change(PROGRAM))
    before = engine.trained
    line = refused(*(arguments("--resume", interrupted) if given else ["tune", "--resume", interrupted]))
    assert "lacks your seal (another user or machine made it, or it was edited), and differs from the" in line
    assert not given or PROGRAM in line
    assert (engine.trained, {*pythons}) == (before, {None})


def test_the_same_command_given_again_goes_on(interrupted, cli, arguments, local):
    user_key.path().unlink()
    before = record.read(interrupted, "tune")
    cli(*arguments("--resume", interrupted)).ended(0)
    assert record.read(interrupted, "tune")[: len(before)] == before
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--seed", 2), "study.seed was 1 and is now 2"),
        (("--numerics", "any"), "settings.numerics was same and is now any"),
        (("--budget", "200s"), "settings.budget_s was 100.0 and is now 200.0"),
        (("--space-only",), "shipped was "),
    ],
)
def test_what_differs_is_named(interrupted, refused, arguments, options, said):
    user_key.path().unlink()
    line = refused(*arguments(*options, "--resume", interrupted))
    assert f"and differs from the command that was given: {said}" in line


def test_kept_variables_that_differ_are_named_once(interrupted, refused, arguments, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "x")
    user_key.path().unlink()
    line = refused(*arguments("--keep-env", "MY_TOKEN", "--resume", interrupted))
    said = 'kept variables was [] and is now ["MY_TOKEN"]; give the record\'s own command, or start a new run'
    assert line.endswith(f"and differs from the command that was given: {said}")


def test_another_space_is_refused(interrupted, refused, arguments, tmp_path):
    """A space names programs, too: those of prefixes."""
    path = interrupted / SPACE_FILE
    path.write_text(path.read_text().replace("5000", "6000"))
    line = f"{path}: is not the space of this search; restore that, or start a new tuning"
    assert refused("tune", "--resume", interrupted) == f"envkit: {line}"
    assert refused(*arguments("--resume", interrupted)) == f"envkit: {line}"
    (tmp_path / "small.yaml").write_text(path.read_text())
    assert "space_sha256 was " in refused(*arguments("--resume", interrupted))


def test_a_place_for_the_profile_that_nobody_sealed_is_no_place(interrupted, cli, local, tmp_path):
    path = interrupted / record.FILE_NAME
    evil = {"event": "resume", "time": 2e9, "command": [], "profile": str(tmp_path / "evil.yaml"), "seal": "0" * 64}
    with path.open("a") as file:
        file.write(json.dumps(evil) + "\n")
    assert cli("tune", "--resume", interrupted).returncode == 0
    assert not (tmp_path / "evil.yaml").exists()
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


def test_what_the_confirmations_record_names_is_not_run(tuned, engine, refused, tmp_path):
    def ctrl_c(variables):
        if (tmp_path / "tuning/confirmation").exists():
            raise KeyboardInterrupt

    engine.misbehave = ctrl_c
    assert tuned().returncode == 130
    engine.misbehave = lambda variables: None
    confirmation = tmp_path / "tuning/confirmation"
    own = {"argv": [PROGRAM], "folder": "/tmp", "metric": None, "unit": "s", "warmup_lines": 0,
           "loss_metric": None, "optimizer_steps": None}  # fmt: skip
    rewrite(confirmation, lambda run: run["study"].update(user_command=own))
    line = refused("tune", "--resume", tmp_path / "tuning")
    assert f"{confirmation}: the record lacks your seal" in line
    assert "user_command was " in line


def test_what_it_leaves_is_for_its_user_alone(tuned, tmp_path):
    tuned()
    folder = tmp_path / "tuning"
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert {path.name: mode for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
    assert {"record.jsonl", "space.yaml", "chosen.yaml"} <= {path.name for path in found}
