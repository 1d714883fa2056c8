"""On an Intel processor, which is simulated: no command takes a profile that has MKL take code that it takes anyway."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from envkit.advice import expected
from envkit.bench import record
from envkit.cli.commands import advise as advise_command
from envkit.cli.commands import profiles as profiles_command
from envkit.messages import from_json
from envkit.profiles import profile
from envkit.rendering import text
from envkit.worker.host import cpu_facts

from tests.advice.trainings import observed
from tests.cli.commands.conftest import FACTS, words
from tests.simulation import times

# All of them, those whose gain is known from trainings that were measured, and what they extend.
OF_MKL = ["glibc-retain-mkl", "jemalloc-retain-mkl", "mimalloc-2-retain-mkl", "mimalloc-retain-mkl", "mkl-native"]
MEASURED = [name for name in OF_MKL if name in expected.fitted().fits]
EXTENDED = {name.removesuffix("-mkl") for name in OF_MKL} - {"mkl-native"}
LIBRARIES = {
    name: {"path": f"/sim/{name}.so", "sha256": "1" * 64}
    for name in ("jemalloc", "mimalloc", "mimalloc-2", "tcmalloc", "mkl-dispatch")
}
WHY = (
    "needs a cpu_vendor other than GenuineIntel, and here it is GenuineIntel; "
    "MKL takes its fastest code there by itself"
)
REFUSAL = f"{WHY}: it does not apply to this machine; choose another"


@pytest.fixture(autouse=True)
def machine(simulation):
    """An Intel processor with all allocators, or another."""

    def make(vendor="GenuineIntel"):
        simulation.inspection(facts={**FACTS, "cpu_vendor": vendor}, libraries=LIBRARIES)

    make()
    return make


@pytest.mark.parametrize("command", ["show", "env", "doctor", "bench", "plan", "ablate", "breakdown", "exec"])
def test_a_command_refuses_such_a_profile_in_one_line(refused, simulation, command):
    # the first has one setting, which leaves nothing to take apart
    name = "mimalloc-retain-mkl" if command == "ablate" else "mkl-native"
    behind = ("--", "true") if command == "exec" else ()
    line = refused(command, name, "--python", simulation.python, *behind)
    assert line == f"envkit: profile '{name}' {REFUSAL}"
    assert not simulation.starts()


def test_it_is_shown_on_another_processor_with_what_it_needs(cli, simulation, machine):
    machine("AuthenticAMD")
    said = cli("show", "mkl-native", "--python", simulation.python).ended(0)
    needed = "needs a cpu_vendor other than GenuineIntel, because MKL takes its fastest code there by itself"
    assert needed in words(said.stdout)


@pytest.mark.parametrize("vendor", ["GenuineIntel", "AuthenticAMD"])
def test_profiles_says_which_do_not_apply(cli, monkeypatch, vendor):
    monkeypatch.setattr(profiles_command, "facts_here", lambda: {**cpu_facts(), "cpu_vendor": vendor})
    listed = {one["name"]: one["does_not_apply"] for one in json.loads(cli("profiles", "--json").stdout)}
    expected = WHY if vendor == "GenuineIntel" else None
    assert {listed[name] for name in OF_MKL} == {expected}
    assert listed["glibc-retain"] is None
    shown = cli("profiles").stdout
    assert (f"do not apply here: {WHY}:" in words(shown)) == (expected is not None)
    after = words(shown).partition(f"do not apply here: {WHY}:")[2].split() if expected else words(shown).split()
    assert {*OF_MKL} <= {*after}


def test_explain_says_which_do_not_apply(cli, simulation):
    arguments = ("explain", "LD_PRELOAD", "--python", simulation.python)
    document = json.loads(cli(*arguments, "--json").stdout)
    assert document["profiles"]["mkl-native"] == "mkl-dispatch"
    assert {name: document["does_not_apply"].get(name) for name in OF_MKL} == dict.fromkeys(OF_MKL, WHY)
    assert "jemalloc-retain" not in document["does_not_apply"]
    assert f"not here {', '.join(OF_MKL)}: {WHY}" in words(cli(*arguments).stdout)


def test_matrix_leaves_them_out_and_measures_the_others(cli, simulation, instant, run_folder):
    fixed = ("--python", simulation.python, "--data", "synthetic", "--seed", 7, "--blocks", 12, "--steps", 3)
    result = cli("matrix", "physical-cores", "mkl-native", "jemalloc-retain-mkl", *fixed, "--output", run_folder)
    assert result.returncode == 0, result
    assert f"left out mkl-native, jemalloc-retain-mkl: {WHY}\n" in result.stderr
    assert [arm["name"] for arm in record.first(run_folder)["study"]["arms"]] == ["baseline", "physical-cores"]


def test_tune_searches_without_them(cli, simulation, instant, tmp_path):
    space = tmp_path / "small.yaml"
    space.write_text(
        "name: small\ntitle: A test\nparameters:\n"
        "  wait: {variable: OMP_WAIT_POLICY, values: [unset, passive]}\n"
        "  mkl: {choices: {unset: , native: {preload: [mkl-dispatch], needs: {cpu_vendor: {not: GenuineIntel}}}}}\n"
    )
    folder = tmp_path / "tuning"
    fixed = ("--space", space, "--python", simulation.python, "--data", "synthetic", "--steps", 3, "--budget", "100s")
    cli("tune", *fixed, "--profile", tmp_path / "found.yaml", "--output", folder)
    first = record.first(folder, "tune")
    shipped = {one["profile"]["name"] for one in first["shipped"]}
    assert "jemalloc-retain" in shipped
    assert not shipped & {*OF_MKL}
    left_out = {one["what"]: text(from_json(one["why"])) for one in first["left_out_profiles"]}
    assert {left_out[f"profile {name}"] for name in OF_MKL} == {WHY}
    preloads = {start["environment"].get("LD_PRELOAD", "") for start in simulation.starts()}
    assert any("jemalloc" in text for text in preloads)
    assert not any("mkl-dispatch" in text for text in preloads)


# --- advise ---


@pytest.fixture
def advised(cli, instant, simulation, tmp_path):
    """What is said of a training whose matrix products MKL takes its fastest code for, and as JSON."""

    def run(*options, dispatch="native", **seen):
        sample = observed(dispatch=dispatch, **seen)
        simulation.worker(
            "baseline", seconds=times(1.0), full_steps=10, observed=sample["observed"], evidence=sample["evidence"]
        )
        arguments = ("advise", "--watch-only", "--python", simulation.python, *options)
        (tmp_path / "train.py").touch()
        own = ("--", "python", "train.py")
        said, document = (cli(*arguments, *more, *own, cwd=tmp_path) for more in ((), ("--json",)))
        assert said.returncode == 0, said
        return words(said.stdout), json.loads(document.stdout)

    return run


def test_advise_gives_the_profiles_without_them(advised):
    said, found = advised()
    assert found["try_first"] in EXTENDED
    assert said.startswith(f"Try {found['try_first']} first: ")
    assert MEASURED
    assert not {one["profile"] for one in found["expected"]} & {*OF_MKL}
    assert {found["left_out"][name] for name in MEASURED} == {WHY}
    assert f"left out {', '.join(one for one in found['left_out'] if one in MEASURED)}: {WHY}" in said


@pytest.fixture
def unmeasured(monkeypatch):
    """A profile that one with MKL's other code extends, and that no training was measured under."""
    known = expected.fitted()
    fewer = replace(known, fits={name: fits for name, fits in known.fits.items() if name != "jemalloc-retain"})
    monkeypatch.setattr(expected, "fitted", lambda: fewer)
    return "jemalloc-retain"


def test_advise_names_what_takes_their_place_without_a_number_that_was_not_measured(unmeasured, advised):
    """What a profile with MKL's other code gained elsewhere is nothing to expect of one without it."""
    said, found = advised()
    assert found["unmeasured"] == [unmeasured]
    assert not {one["profile"] for one in found["expected"]} & {*found["unmeasured"]}
    for name in found["unmeasured"]:
        assert f"{name} - not measured yet page-faults" in said
    said, found = advised(system_share=0.0)
    assert found["unmeasured"] == [], "nothing is seen that they would take away"
    assert "not measured yet" not in said


def test_advise_on_another_processor_has_them(advised, machine):
    machine("AuthenticAMD")
    _, found = advised(dispatch="generic")
    assert {*MEASURED} <= {one["profile"] for one in found["expected"]}
    assert found["unmeasured"] == []


def test_advise_of_a_process_that_runs_has_no_such_profile(cli, instant, unmeasured, monkeypatch):
    usage = {"user_s": 14.0, "system_s": 6.0, "minor_faults": 200_000}
    seen = {"seconds": 10.0, "usage": usage, "waited_s": 0.1}
    monkeypatch.setattr(advise_command.steady_process, "require", lambda pid: None)
    monkeypatch.setattr(advise_command.steady_process, "watch", lambda pid, seconds: seen | {"pid": pid})
    monkeypatch.setattr(advise_command.engine_options, "engine", lambda arguments, command=(): (instant, {}))
    answer = cli("advise", "--pid", "4711", "--json").ended(0)
    found = json.loads(answer.stdout)
    assert found["try_first"] in EXTENDED - {unmeasured}
    assert found["unmeasured"] == [unmeasured]


# --- all that there is ---


def test_every_shipped_profile_that_has_mkl_take_other_code_needs_another_processor():
    """Where MKL takes its fastest code by itself, what such a profile expects is so whatever happens."""
    loaded = [profile.load(name) for name in profile.names()]
    assert [one.name for one in loaded if "mkl-dispatch" in one.preload] == OF_MKL
    assert {one.needs["cpu_vendor"]["not"] for one in loaded if "mkl-dispatch" in one.preload} == {"GenuineIntel"}
