"""A canary in the caller's environment: no command prints it, or leaves it in a file, whatever workers say of it."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from urllib.parse import quote

import pyarrow.parquet
import pytest
from envkit.cli import overview, tuning
from envkit.cli.commands import doctor, tune
from envkit.worker.measure.machine_load import Load

from tests.advice.trainings import observed
from tests.cluster.fleet.nodes import fleet
from tests.instant_engine import InstantEngine, replace_engine
from tests.report.test_issue import EVIDENCE
from tests.tuning.planted_engine import SMALL_SPACE, ship

PASSWORD = "pr0xy-canary-31c"
KEPT = {"MY_TOKEN": "k3pt-canary-7f3a9", "OMP_STACKSIZE": "st4ck-canary-02e", "LD_PRELOAD": "/opt/l1b-canary-9/x.so"}
# What nobody names: workers inherit the first of these, and not the last.
OWN = {
    "WANDB_API_KEY": "w4ndb-canary-51c2d",
    "HF_TOKEN": "hf-canary-44ab1",
    "AWS_SECRET_ACCESS_KEY": "aws/canary+9921",
    "HTTPS_PROXY": f"https://jane:{PASSWORD}@proxy.example.org:3128",
    "DATABASE_URL": f"postgres://jane:{PASSWORD}@db.example.org/runs",
    "TORCH_TOKEN": "t0rch-canary-8d8",
}
CANARIES = (*KEPT.values(), *(value for value in OWN.values() if PASSWORD not in value), PASSWORD)
KEEP = [word for name in KEPT for word in ("--keep-env", name)]

# Words in capitals are replaced: files and folders, and the options that several commands share.
WALK = {
    "advise": ["PYTHON KEEP --json -- python train.py", "PYTHON KEEP -- python train.py",
               "PYTHON KEEP --prove 60s --output OUT -- python train.py"],
    "bench": ["MINE SMALL KEEP --output OUT", "FAILS SMALL KEEP --output OUT", "FAILS SMALL KEEP --json --output OUT",
              "PRINTS SMALL KEEP --output OUT", "MINE SMALL KEEP --dry-run", "MINE SMALL KEEP --dry-run --json",
              "MINE PYTHON KEEP --blocks 6 --output OUT -- python train.py"],
    "exec": ["WRONG KEEP --evidence OUT.json -- PROGRAM -c pass",
             "intel-omp KEEP --evidence OUT.json -- env LD_PRELOAD=/opt/l1b-canary-9/x.so PROGRAM -c TORCH"],
    "matrix": ["MINE FAILS SMALL KEEP --output OUT"],
    "tune": ["TUNE --output OUT", "TUNE --output OUT --json", "TUNE --output OUT --profile OUT.yaml"],
    "ablate": ["TWO SMALL KEEP --output OUT", "TWO SMALL KEEP --json --output OUT"],
    "profiles": ["", "--json"],
    "show": ["MINE PYTHON", "MINE PYTHON --json", "baseline PYTHON"],
    "explain": ["KMP_BLOCKTIME PYTHON", "MALLOC_CONF PYTHON --json"],
    "env": [f"MINE PYTHON --format {one}" for one in ("shell", "dotenv", "docker", "sbatch", "kubernetes", "jupyter")],
    "doctor": ["MINE PYTHON", "FAILS PYTHON", "FAILS PYTHON --json", "PRINTS PYTHON", "MINE PYTHON --for-issue",
               "FAILS PYTHON --for-issue", "--for-issue PYTHON --json"],
    "breakdown": ["MINE OPERATORS", "MINE OPERATORS --json", "FAILS OPERATORS", "MINE OPERATORS --phases"],
    "report": ["RUN", "RUN --details", "RUN --json", "RUN --markdown", "RUN --redact --details", "RUN --html OUT.html",
               "RUN --png OUT.png", "RUN --redact --html OUT.html", "RUN --redact --png OUT.png --markdown OUT.md",
               "FAILED --details", "FAILED --redact --json", "FAILED --html OUT.html"],
    "history": ["RUN", "ALL --json", "ALL --redact"],
    "baseline": ["save old --from RUN --folder BASE", "list --folder BASE", "check old --against RUN --folder BASE",
                 "check old --against RUN --folder BASE --json", "diff old old --folder BASE"],
    "export": [f"RUN --format {one} --output OUT.{one}" for one in ("csv", "json", "parquet", "openmetrics")]
              + ["RUN --format csv", "ALL --format json --redact"],
    "submit": ["MINE SMALL KEEP --dry-run", "MINE SMALL KEEP --dry-run --json",
               "MINE SMALL KEEP --detach --output OUT"],
    "fleet": ["report FLEET", "report FLEET --json --redact", "report FLEET --html OUT.html --prometheus OUT.prom",
              "diff FLEET LATER", "diff FLEET LATER --json"],
    "plan": [f"{one} SMALL KEEP --output OUT" for one in ("MINE", "MINE --json", "FAILS", "")],
    "compare-engines": ["MINE ENGINES --data synthetic --steps 3 --blocks 6 KEEP --output OUT"],
    "loader-grid": ["GRID --output OUT", "GRID --output OUT --json"],
    "completion": ["bash", "zsh", "fish"],
}  # fmt: skip


def test_every_command_is_walked():
    assert WALK.keys() == overview.COMMANDS.keys()


class Telling(InstantEngine):
    """Its workers end or fail as the simulation has it, and tell all that they inherited, wherever they can."""

    def run(self, task):
        outcome = super().run(task)
        has = {name: value for name, value in {**task.inherited, **task.passed_on}.items() if name in {*KEPT, *OWN}}
        said = f"trouble\nrefused: {', '.join(has.values())}\n"
        if outcome.failure is not None or not outcome.stdout.startswith("{"):
            return replace(outcome, stderr_tail=said, stdout=outcome.stdout and said)
        document = json.loads(outcome.stdout)
        if "evidence" in document:
            document["evidence"]["openmp"]["settings"] |= has
        return replace(outcome, stdout=json.dumps(document), stderr_tail=said)


@pytest.fixture
def words(simulation, write_profile, tmp_path):
    """The words that each word in capitals of WALK stands for."""
    files = {name: tmp_path / name.lower() for name in ("RUN", "FAILED", "FLEET", "LATER", "BASE")}
    for name, does in {
        "mine": {},
        "fails": {"does": "exit", "status": 3},
        "prints": {"does": "print", "text": "x"},
    }.items():
        files[name.upper()] = write_profile(name, f"env: {{SIMULATED: {name}}}\n")
        simulation.worker(name, seconds=[0.5, 0.51, 0.49], evidence=EVIDENCE, **does)
    files["WRONG"] = write_profile("wrong", "env: {OMP_NUM_THREADS: 1}\nexpect: {malloc.allocator: jemalloc}\n")
    files["TWO"] = write_profile("two", "env: {OMP_WAIT_POLICY: passive, GOMP_SPINCOUNT: 1}\n")
    space = tmp_path / "space.yaml"
    space.write_text(SMALL_SPACE)
    python, small = ["--python", simulation.python], ["--data", "synthetic", "--seed", 7, "--steps", 3]
    return {
        **{name: [path] for name, path in files.items()},
        "ALL": [tmp_path], "PROGRAM": [sys.executable], "TORCH": ["import torch"],
        "ENGINES": ["--engines", "local,docker", "--image", "mine"], "KEEP": KEEP, "PYTHON": python,
        "SMALL": [*python, *small, "--blocks", 6],
        "OPERATORS": [*python, "--data", "synthetic", "--steps", 4, "--warmup-steps", 1],
        "TUNE": [*python, *small[:2], *small[4:], *KEEP, "--space", space, "--budget", "60s"],
        "GRID": [*python, *KEEP, "--workers", "0,2", "--batches", "16", "--blocks", 1],
    }  # fmt: skip


@pytest.fixture
def walk(cli, cli_process, words, simulation, write_profile, tmp_path, monkeypatch, images_of, slurm):
    """Run a command line of WALK; returns its result."""
    for name, value in {**KEPT, **OWN, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    replace_engine(monkeypatch, "local", Telling(simulation))
    images_of("docker").add("mine")
    monkeypatch.setattr(doctor, "watch_machine", lambda seconds: Load(seconds, 0.0, 0.0, 0.0))
    monkeypatch.setattr(tune, "LOCAL_FOLDER", tmp_path / "local")
    monkeypatch.setattr(tuning, "SHIPPED_FOLDER", ship(monkeypatch, tmp_path / "shipped", write_profile))
    (tmp_path / "train.py").touch()
    seen = observed()
    told = {"observed": {**seen["observed"], "helpers": None, "threads": 2}, "evidence": EVIDENCE | seen["evidence"]}
    simulation.worker("baseline", seconds=[1.0, 1.01, 0.99], full_steps=10, **told)

    def run(line, number=0):
        out = tmp_path / f"out{number}"
        typed = []
        for word in line.split():
            typed += words.get(word, [word.replace("OUT", str(out)) if word.startswith("OUT") else word])
        # an issue tells what known performance variables are set to
        plain = {"OMP_STACKSIZE": "4M", "LD_PRELOAD": ""} if "--for-issue" in typed else {}
        # which waits for its command by signals that another thread of this process may get
        return (cli_process if typed[0] == "exec" else cli)(*typed, cwd=tmp_path, **plain)

    return run


def forms(text):
    """The text as it may stand in a file."""
    raw = text.encode()
    return {raw, base64.b64encode(raw).rstrip(b"="), quote(text).encode(), quote(text, safe="").encode(), raw[::-1]}


def content(path):
    """The bytes of a file; a table of a compressed one is read."""
    if path.suffix == ".parquet":
        return path.read_bytes() + json.dumps(pyarrow.parquet.read_table(path).to_pylist()).encode()
    return path.read_bytes()


def leaks(folders, printed):
    """Where there is a canary: the file, or None for what is printed."""
    of_simulation = ("config.json", "starts.jsonl")  # what workers are to say, and what they were given
    files = [
        path for folder in folders for path in folder.rglob("*") if path.is_file() and path.name not in of_simulation
    ]
    texts = {None: printed.encode(), **{path: content(path) for path in files}}
    return [(path, one) for path, text in texts.items() for one in CANARIES if any(form in text for form in forms(one))]


@pytest.mark.parametrize("command", WALK)
def test_no_command_gives_them_away(command, walk, words, simulation, tmp_path, own_surroundings):
    folders, typed = (tmp_path, own_surroundings), " ".join(WALK[command]).split()
    assert not leaks(folders, ""), "what is there before has none"
    for folder, profile in (("RUN", "MINE"), ("FAILED", "FAILS")):
        if folder in typed:
            walk(f"bench {profile} SMALL KEEP --output {folder}")
    if "FLEET" in typed:
        for folder, slow in (("FLEET", "n02"), ("LATER", "n03")):
            fleet(*words[folder], 6, slower={slow: 0.3})
    for number, line in enumerate(WALK[command]):
        result = walk(f"{command} {line}", number)
        assert result.returncode in (0, 1, *((2,) if "PRINTS" in line else ())), result
        printed = [one for one in (result.stdout + result.stderr).splitlines() if not one.startswith("ERROR: ld.so: ")]
        assert leaks(folders, "\n".join(printed)) == [], line
    starts = simulation.starts(all=True)
    assert leaks((), json.dumps([start["arguments"] for start in starts])) == []
    assert all(start["environment"].items() >= {"HF_TOKEN": OWN["HF_TOKEN"]}.items() for start in starts)
    kept = [start for start in starts if KEPT.items() <= start["environment"].items()]
    assert kept or "KEEP" not in typed or command in ("exec", "submit"), "workers had something to tell"
