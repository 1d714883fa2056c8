"""Run every command with secrets in the environment, and find them in nothing that it prints or leaves.

Workers print all that they were given.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from envkit.cli import COMMANDS, slurm_node
from envkit.cli.commands import doctor, tune
from envkit.engines.base import EngineOptions
from envkit.report.exports import FORMATS
from envkit.worker.measure.machine_load import Load

from tests.advice.trainings import observed
from tests.cluster.fleet.nodes import fleet
from tests.cluster.slurm.conftest import ID, settings, study, submitted_as
from tests.instant_engine import InstantEngine, replace_engine
from tests.instant_images import InstantImages
from tests.processes import until
from tests.simulation import times
from tests.tuning.planted_engine import SMALL_SPACE, PlantedEngine, ship

CANARY = "c4n4ry"
# Kept by the user; inherited by every worker, as trainings need them; and a password within an address.
KEPT = {"MY_OWN": f"{CANARY}-k3pt-7f3a9", "OMP_STACKSIZE": f"{CANARY}-st4ck-1bM"}
INHERITED = {
    "WANDB_API_KEY": f"{CANARY}-w4ndb-51c2d", "HF_TOKEN": f"hf_{CANARY}Qx81", "PGPASSWORD": f"{CANARY}-p0stgres",
    "AWS_SECRET_ACCESS_KEY": f"{CANARY}/+aB3dE", "HTTPS_PROXY": f"https://jane:{CANARY}-pr0xy@proxy.example.org:3128",
    "DATABASE_URL": f"postgres://{CANARY}-t0ken@db.example.org/x",
}  # fmt: skip
KEEP = [word for name in KEPT for word in ("--keep-env", name)]


def talkative(engine):
    """Make a class of an engine whose workers print the values of all that they were given, on stderr."""

    class Talkative(engine):
        def run(self, launch):
            given = {**launch.inherited, **launch.passed_on, **launch.variables}
            said = "\n".join(f"{name} is {value}" for name, value in given.items() if CANARY in value)
            outcome = super().run(launch)
            # what a worker writes last is what is quoted
            return replace(outcome, stderr_tail=f"{said}\nlast: {' '.join(said.split())}\n")

    return Talkative


def with_canary(folder, *without):
    """Return all files below a folder that have the canary in name or content, but for those in folders ``without``."""
    files = [path for path in folder.rglob("*") if path.is_file() and not any(map(path.is_relative_to, without))]
    assert files
    return [path for path in files if CANARY.encode() in path.read_bytes() + os.fsencode(path.name)]


class Walk:
    """Runs commands in a home of their own. ``mine`` is a profile that is faster, and workers of ``bad`` fail."""

    def __init__(self, cli, folder, simulation, write_profile, monkeypatch):
        self.cli, self.folder, self.simulation, self.patch = cli, folder, simulation, monkeypatch
        self.write = write_profile
        self.mine, self.bad, self.wrong = (
            write_profile(name, f"{more}env:\n  SIMULATED: {name}\n")
            for name, more in (("mine", ""), ("bad", ""), ("wrong", "expect:\n  malloc.allocator: tcmalloc\n"))
        )
        simulation.worker("mine", seconds=times(0.5))
        simulation.worker("bad", does="exit", status=3)
        simulation.worker("bad warming", does="exit", status=3)
        self.python = ("--python", simulation.python)
        self.short = (*self.python, "--data", "synthetic", "--seed", 7, "--steps", 3, "--blocks", 6)
        self.results = itertools.count()

    def __call__(self, *arguments, status=0):
        result = self.cli(*arguments, cwd=self.folder)
        for stream in (result.stdout, result.stderr):
            assert CANARY not in stream, result.args
        assert result.returncode == status, result
        return result

    def output(self):
        """A folder that is not there yet, as --output."""
        return "--output", self.folder / f"results/{next(self.results)}"

    def run(self, status=1):
        """Return the folder of a run, of which a worker failed at last if ``status`` is 1."""
        if status == 1:
            self.simulation.worker("mine", seconds=times(0.5), does="exit", status=3, **{"from": 5})
        option, place = self.output()
        self("bench", self.mine, *self.short, *KEEP, option, place, status=status)
        return place

    def left(self):
        """Return all files that have the canary, but for those of simulations, which hold all that workers got."""
        return with_canary(self.folder, self.simulation.folder, self.folder / "images")


def advise(walk):
    seen = observed()
    walk.simulation.worker("baseline", seconds=[1.0], full_steps=10, observed=seen["observed"],
                           evidence={**seen["evidence"], "gpu": {}})  # fmt: skip
    (walk.folder / "train.py").touch()
    training = ("--", "python", "train.py")
    walk("advise", "--watch-only", *walk.python, *KEEP, *training)
    walk("advise", "--watch-only", *walk.python, *KEEP, "--json", *training)
    walk("advise", *walk.python, *KEEP, *walk.output(), *training, status=1)  # no setting is in effect there
    walk("advise", *walk.python, *KEEP, "--json", *walk.output(), *training, status=1)
    walk.simulation.worker("baseline", does="exit", status=3)
    walk("advise", *walk.python, *KEEP, *training, status=2)


def bench(walk):
    walk("bench", walk.mine, *walk.short, *KEEP, *walk.output())
    walk("bench", walk.mine, *walk.short, *KEEP, "--json", *walk.output())
    walk("bench", walk.bad, *walk.short, *KEEP, *walk.output(), status=1)
    walk("bench", walk.wrong, *walk.short, *KEEP, *walk.output(), status=1)
    walk("bench", walk.mine, *walk.short, *KEEP, "--dry-run")
    walk.simulation.worker("inspect", does="exit", status=3)
    walk("bench", walk.mine, *walk.short, *KEEP, *walk.output(), status=2)


def execute(walk):
    """The command itself prints nothing here: its output is its own."""
    for keep, status in ((), 0), (KEEP, 0):
        evidence = walk.folder / "evidence.json"
        walk("exec", *keep, "--evidence", evidence, "gnu-omp", "--", "python", "-c", "pass", status=status)
        assert evidence.exists()


def matrix(walk):
    walk("matrix", walk.mine, walk.bad, *walk.short, *KEEP, *walk.output())


def tuned(walk):
    engine = talkative(PlantedEngine)(walk.simulation, lambda variables: 0.2 * ("GOMP_SPINCOUNT" in variables))
    replace_engine(walk.patch, "local", engine)
    ship(walk.patch, walk.folder / "shipped", walk.write, known="env: {OMP_WAIT_POLICY: passive}\n")
    walk.patch.setattr(tune, "LOCAL_FOLDER", walk.folder / "local")
    (walk.folder / "small.yaml").write_text(SMALL_SPACE)
    given = ("--space", walk.folder / "small.yaml", "--data", "synthetic", "--steps", 3, *KEEP)
    walk("tune", *given, "--budget", "100s", *walk.output())
    assert list((walk.folder / "local").glob("*.yaml"))


def ablate(walk):
    two = walk.write("two", "env: {SIMULATED: mine, OMP_WAIT_POLICY: passive, OMP_DYNAMIC: 'true'}\n")
    walk("ablate", two, *walk.short[:-1], 12, *KEEP, *walk.output())


def shown(walk):
    for more in ((), ("--json",)):
        walk("show", walk.mine, *walk.python, *more)


def env(walk):
    for kind in ("shell", "dotenv", "docker", "sbatch", "kubernetes", "python"):
        walk("env", walk.mine, *walk.python, "--format", kind)


def diagnosed(walk):
    walk.patch.delenv("MY_OWN")  # which has the name of a secret nowhere, and this command keeps none
    walk.patch.setattr(doctor, "watch_machine", lambda seconds: Load(seconds, 0.0, 0.0, 0.0))
    walk("doctor", walk.mine, *walk.python)
    walk("doctor", walk.mine, *walk.python, "--json")
    walk.simulation.worker("baseline warming", does="exit", status=3)
    walk.simulation.worker("mine", does="exit", status=3)
    walk.simulation.worker("mine warming", does="exit", status=3)
    for more in ((), ("--json",), ("--for-issue",), ("--for-issue", "--json")):
        walk("doctor", walk.mine, *walk.python, *more, status=1)


def breakdown(walk):
    walk.patch.delenv("MY_OWN")  # as above
    fixed = (*walk.python, "--data", "synthetic", "--steps", 4, "--warmup-steps", 1)
    for more in ((), ("--phases",), ("--json",)):
        walk("breakdown", walk.mine, *fixed, *more)
        walk("breakdown", walk.bad, *fixed, *more, status=1)


def report(walk):
    made = walk.run()
    page, pictures, tables = (walk.folder / f"report.{kind}" for kind in ("html", "png", "md"))
    for redact in ((), ("--redact",)):
        for more in ((), ("--details",), ("--json",), ("--markdown",)):
            walk("report", made, *more, *redact)
        walk("report", made, "--html", page, "--png", pictures, "--markdown", tables, *redact)
        assert page.exists()
        assert tables.exists()


def history(walk):
    made = walk.run()
    for more in ((), ("--json",), ("--redact",)):
        walk("history", made.parent, *more)


def baseline(walk):
    made, saved = walk.run(status=0), ("--folder", walk.folder / "baselines")
    for name in ("old", "new"):
        walk("baseline", "save", name, "--from", made, *saved)
    walk("baseline", "list", *saved)
    walk("baseline", "diff", "old", "new", *saved)
    walk("baseline", "check", "old", "--against", made, *saved)


def export(walk):
    made = walk.run()
    for kind in FORMATS:
        for redact in ((), ("--redact",)):
            walk("export", made, "--format", kind, "--output", walk.folder / f"export-{kind}{len(redact)}", *redact)


def submit(walk):
    for more in ((), ("--json",)):
        walk("submit", walk.mine, *walk.short, *KEEP, "--dry-run", *more, *walk.output())
    walk("submit", walk.mine, *walk.short, *KEEP, "--detach", *walk.output())
    for profile in (walk.mine, walk.bad):  # what the job then runs on each of its nodes
        folder = walk.folder / f"submission-{profile.stem}"
        folder.mkdir()
        fixed = {"engine_options": EngineOptions(python=str(walk.simulation.python)), "data": "synthetic"}
        asked = study(str(profile), seed=7, steps=3, blocks=6, keep_env=tuple(KEPT), **fixed)
        settings(study=asked).write(folder)
        _on_node(walk, folder)
        assert (folder / "node1/log.txt").exists()
        assert (folder / "node1/node.json").exists()


def _on_node(walk, folder):
    with walk.patch.context() as patch:
        patch.setenv("SLURMD_NODENAME", "node1")
        patch.setenv("SLURM_JOB_ID", "17")
        patch.setattr("sys.argv", ["slurm_node", str(folder), ID, submitted_as(folder)])
        patch.chdir(Path.cwd())  # which it changes
        slurm_node.main()


def fleets(walk):
    place = fleet(walk.folder / "fleet", 8, slower={"n02": 0.3})
    page, metrics = walk.folder / "fleet.html", walk.folder / "fleet.prom"
    walk("fleet", "report", place, "--html", page, "--prometheus", metrics, status=1)
    walk("fleet", "diff", place, fleet(walk.folder / "later", 8, slower={"n02": 0.3, "n03": 0.3}), status=1)
    walk("fleet", walk.mine, *walk.python, "--dry-run")


def calibration(walk):
    walk("plan", walk.mine, *walk.short, *KEEP)
    walk("plan", walk.bad, *walk.short, *KEEP, status=1)


def engines_compared(walk):
    for name in ("docker", "podman"):
        images = InstantImages(walk.folder / "images" / name, name)
        replace_engine(walk.patch, name, images)
        images.add("mine")
    given = ("--engines", "docker,podman", "--image", "mine", "--data", "synthetic", "--steps", 3, "--blocks", 6)
    walk("compare-engines", "baseline", *given, *KEEP, *walk.output())


def loader_grid(walk):
    small = ("--workers", "0,2", "--batches", "16,32", "--blocks", 1)
    walk("loader-grid", *walk.python, *small, *KEEP, *walk.output())


WALKS = {
    "advise": advise,
    "bench": bench,
    "exec": execute,
    "matrix": matrix,
    "tune": tuned,
    "ablate": ablate,
    "profiles": lambda walk: [walk("profiles", *more) for more in ((), ("--json",))],
    "show": shown,
    "explain": lambda walk: walk("explain", "KMP_BLOCKTIME", *walk.python, "--json"),
    "env": env,
    "doctor": diagnosed,
    "breakdown": breakdown,
    "report": report,
    "history": history,
    "baseline": baseline,
    "export": export,
    "submit": submit,
    "fleet": fleets,
    "plan": calibration,
    "compare-engines": engines_compared,
    "loader-grid": loader_grid,
    "completion": lambda walk: walk("completion", "bash"),
}


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """A home, a temporary folder and a cache below one folder, and the canary in the environment."""
    for name, inner in (
        ("HOME", "home"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_CONFIG_HOME", "config"),
        ("TMPDIR", "tmp"),
    ):
        (tmp_path / inner).mkdir()
        monkeypatch.setenv(name, str(tmp_path / inner))
    for name, value in {**KEPT, **INHERITED}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def walk(cli, surroundings, tmp_path, simulation, write_profile, monkeypatch):
    """Commands with workers that tell."""
    replace_engine(monkeypatch, "local", talkative(InstantEngine)(simulation))
    return Walk(cli, tmp_path, simulation, write_profile, monkeypatch)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_or_leaves_a_secret(command, walk, slurm):
    WALKS[command](walk)
    assert walk.left() == []
    assert CANARY not in str(slurm[0]), "what sbatch was given"


def on_command_lines():
    """Return the command lines on this machine that have the canary; anybody can read them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if CANARY.encode() in (words := path.read_bytes()):
                found.append(words)
    return found


def test_what_a_killed_run_leaves(surroundings, bench_arguments, start, simulation, tmp_path):
    """With a worker that runs meanwhile, whose command line has nothing of it either."""
    simulation.worker("mine", does="hang", stderr=" ".join({**KEPT, **INHERITED}.values()))
    process = start(*bench_arguments("mine", *KEEP))
    until(lambda: any(one["name"].startswith("mine") for one in simulation.starts(all=True)))
    assert on_command_lines() == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert with_canary(tmp_path, simulation.folder) == []


def test_what_a_killed_exec_leaves(surroundings, start, tmp_path):
    """The command runs on, as an orphan, and leaves evidence where it was told to."""
    script = tmp_path / "train.py"
    script.write_text(f"import pathlib, time\npathlib.Path('{tmp_path}/begun').touch()\ntime.sleep(2)\n")
    process = start("exec", *KEEP, "gnu-omp", "--", sys.executable, script)
    until((tmp_path / "begun").exists)
    assert on_command_lines() == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert with_canary(tmp_path) == []
