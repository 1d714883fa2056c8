"""Refusals come before any process starts, are one line, and leave nothing: what is typed, and the message's code.

Options, files and facts about this machine can cause a refusal. Each package adds rows to the table.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from envkit import cli
from envkit.cli import measuring
from envkit.common.errors import InputError
from envkit.common.messages import InFile
from envkit.messages import Message
from envkit.rendering import text_of

HEAD = "name: mine\ntitle: x\nwhy: {reason: r}\n"
FILE = "mine.yaml"
ALL, TRUE = ("--workload", "all"), ("--", "true")
TABLE = [
    # command, content of mine.yaml, code of the innermost message, what the text names
    (("show", "inetl-omp"), None, "profiles.unknown-profile", "'intel-omp'"),
    (("show", FILE), None, "profiles.no-profile-file", FILE),
    (("show", "tuned"), None, "profiles.not-tuned", "envkit tune"),
    (("show", FILE), "- a\n", "common.not-a-mapping", f"{FILE}:1: "),
    (("show", FILE), "a: [\n", "common.invalid-yaml", f"{FILE}:2: "),
    (("show", FILE), f"{HEAD}evn: {{}}\n", "common.unknown-key", f"{FILE}:4: unknown key 'evn'"),
    (("show", FILE), "title: x\nwhy: {reason: r}\n", "common.missing-key", f"{FILE}:1: 'name'"),
    (("show", FILE), f"{HEAD}ranks: two\n", "common.wrong-type", f"{FILE}:4: 'ranks'"),
    (("show", FILE), f"{HEAD}ranks: 0\n", "common.below-minimum", f"{FILE}:4: 'ranks'"),
    (("show", FILE), f"{HEAD}numerics: maybe\n", "common.not-a-choice", f"{FILE}:4: 'numerics'"),
    (("show", FILE), f"{HEAD}name: mine\n", "common.duplicate-key", f"{FILE}:4: the key 'name'"),
    (("show", FILE), HEAD.replace("mine", "other"), "profiles.name-is-not-file", f"{FILE}:1: the name 'other'"),
    (("show", FILE), f"{HEAD}extends: intel-opm\n", "profiles.extends-unknown", "'intel-omp'"),
    (("show", FILE), f"{HEAD}extends: mine\n", "profiles.extends-circle", "mine -> mine"),
    (("show", FILE), f"{HEAD}env: {{A: '${{cores}}'}}\n", "profiles.unknown-fact", f"{FILE}:4: unknown"),
    (("show", "baseline", "--engine", "lokal"), None, "common.unknown-word", "'lokal'"),
    (("show", "baseline", "--python", "/none"), None, "engines.no-interpreter", "--python /none"),
    (("show", "baseline", "--memory", "4g"), None, "engines.option-without-effect", "--memory"),
    (("bench",), None, "cli.needs-profile", "PROFILE"),
    (("bench", FILE), f"{HEAD}env: {{TORCHINDUCTOR_FREEZING: '1'}}\n", "bench.nothing-compiles", "--compile"),
    (("bench", "inetl-omp"), None, "profiles.unknown-profile", "'intel-omp'"),
    (("bench", "baseline", "--engine", "dokcer"), None, "common.unknown-word", "'docker'"),
    (("bench", "baseline", "--python", "/no/python"), None, "engines.no-interpreter", "--python /no/python"),
    (("bench", "baseline", "--data", "/no/folder"), None, "bench.not-in-folder", "--data /no/folder"),
    (("bench", "baseline", "--image", "x"), None, "engines.option-without-effect", "--image"),
    (("bench", "baseline", "--cpuset-cpus", "0"), None, "engines.option-without-effect", "--cpuset-cpus"),
    (("bench", "baseline", "--weak"), None, "bench.weak-on-one-rank", "--nproc"),
    (("bench", "baseline", "--weak", *TRUE), None, "cli.not-of-command", "--weak"),
    (("bench", "baseline", "--weak", "--nproc", "2", *TRUE), None, "cli.not-of-command", "--nproc 2"),
    (("bench", "baseline", "--instances", "2", "--against-python", "/usr/bin/python3"), None, "cli.has-no-effect",
     "--instances 2 has no effect with --against-python"),
    (("bench", "baseline", "--until", "accuracy=0.9"), None, "cli.option-alone", "--full"),
    (("bench", "baseline", "--full", "--until", "acuracy=0.9"), None, "bench.no-such-figure", "'accuracy'"),
    (("bench", "baseline", "--full", "--until", "accuracy=1.2"), None, "bench.target-above-one", "accuracy=1.2"),
    (("bench", "baseline", "--until", "accuracy=0.9", *TRUE), None, "cli.not-of-command", "--until"),
    (("ablate", "intel-omp", "--until", "loss=1"), None, "cli.no-interval", "--until"),
    (("plan", "intel-omp", "--until", "loss=1"), None, "cli.no-interval", "--until"),
    (("bench", "baseline", "--full", *ALL), None, "cli.trains-one", "--full trains one workload"),
    (("bench", "baseline", "--full", "--steps", "5"), None, "cli.has-no-effect", "--steps has no effect with --full"),
    (("bench", "baseline", "--full", "--budget", "60s"), None, "cli.has-no-effect", "--budget"),
    (("bench", "baseline", "--full", "--half-width", "1%"), None, "cli.has-no-effect", "--half-width"),
    (("bench", "baseline", "--blocks", "8", "--half-width", "1%"), None, "cli.has-no-effect", "--half-width"),
    (("submit", "intel-omp", "--dry-run", "--blocks", "8", "--half-width", "1%"), None, "cli.has-no-effect",
     "--half-width"),
    (("bench", "baseline", "--epochs", "2"), None, "cli.option-alone", "--epochs 2 has no effect without --full"),
    (("bench", "baseline", "--keep-env", "NOT_SET"), None, "bench.variable-not-set", "NOT_SET"),
    (("bench", "baseline", "--channels-last", *ALL), None, "bench.no-images", "--channels-last"),
    (("bench", "baseline", "--workload", "translation", "--channels-last"), None, "bench.no-images", "translation"),
    (("bench", "baseline", "--workload", "loader-w2-b32", "--scale", "2"), None, "bench.no-scale", "loader-w2-b32"),
    (("bench", "baseline", "--workload", "segmentation", "--data", "synthetic"), None, "bench.makes-its-data",
     "--data synthetic: has no effect on segmentation"),
    (("matrix", "no-such-profile"), None, "profiles.unknown-profile", "'no-such-profile'"),
    (("matrix", "physical-cores", "--engine", "lokal"), None, "common.unknown-word", "'local'"),
    (("matrix", "jemalloc", *ALL), None, "cli.trains-one", "envkit matrix trains one workload"),
    (("tune", *ALL), None, "cli.trains-one", "envkit tune trains one workload"),
    (("ablate",), None, "cli.needs-profile", "PROFILE"),
    (("ablate", "no-such-profile"), None, "profiles.unknown-profile", "'no-such-profile'"),
    (("ablate", "gnu-omp", "--full"), None, "cli.no-interval", "--full"),
    (("ablate", "gnu-omp", *ALL), None, "cli.trains-one", "envkit ablate trains one workload"),
    (("ablate", "gnu-omp", "--engine", "lokal"), None, "common.unknown-word", "'local'"),
    (("ablate", "baseline"), None, "cli.nothing-to-ablate", "baseline: "),
    (("ablate", FILE), f"{HEAD}", "cli.nothing-to-ablate", FILE),
    (("ablate", FILE), f"{HEAD}env: {{A: '1'}}\n", "cli.ablates-one-setting", "envkit bench mine.yaml"),
    (("ablate", FILE), f"{HEAD}env: {{A: '1', B: '1'}}\nranks: 2\n", "cli.several-ranks", "'ranks'"),
    (("breakdown", FILE), f"{HEAD}ranks: 2\n", "cli.several-ranks", "'ranks'"),
    (("breakdown", "intel-omp", "intel-omp"), None, "cli.compared-with-itself", "'intel-omp'"),
    (("breakdown", "intel-omp", "--phases", "--top", "3"), None, "cli.has-no-effect", "--top"),
    (("breakdown", "intel-omp", "--phases", "--forward"), None, "cli.has-no-effect", "--forward"),
    (("plan", "--full"), None, "cli.no-interval", "--full"),
    (("plan", FILE, "--full"), HEAD, "cli.no-interval", "--full"),
    (("plan", FILE, "--epochs", "2"), HEAD, "cli.no-interval", "--epochs"),
    (("plan", "--blocks", "2"), None, "cli.too-few-blocks-for-noise", "--blocks 2"),
    (("plan", *ALL), None, "cli.trains-one", "envkit plan trains one workload"),
    (("plan", "jemalloc", *ALL), None, "cli.trains-one", "envkit plan trains one workload"),
    (("compare-engines",), None, "cli.needs-profile", "for example baseline"),
    (("compare-engines", "baseline", "--engines", "local,local"), None, "cli.too-few-engines", "--engines local,local"),
    (("compare-engines", "baseline", "--engines", "local,dokcer"), None, "common.unknown-word", "'docker'"),
    (("compare-engines", "baseline", *ALL), None, "cli.trains-one", "envkit compare-engines trains one workload"),
    (("compare-engines", "baseline", "--engines", "local"), None, "cli.too-few-engines", "--engines local"),
    (("plan", "intel-omp", "--blocks", "2"), None, "cli.too-few-blocks-for-noise", "--blocks 2"),
    (("loader-grid", "--workers", "0", "--batches", "16"), None, "cli.one-cell", "--prefetch"),
    (("loader-grid", "--workers", "0", "--prefetch", "4"), None, "cli.has-no-effect", "--prefetch"),
    (("loader-grid", "--workers", "0", "--start-method", "fork"), None, "cli.has-no-effect", "--start-method"),
    (("loader-grid", "--batches", "100", "--start-method", "fork"), None, "cli.few-batches-in-epoch", "--batches 100"),
    (("loader-grid", "--full"), None, "cli.has-no-effect", "--full"),
    (("loader-grid", "--workload", "cnn"), None, "cli.has-no-effect", "--workload"),
    (("loader-grid", "--", "true"), None, "cli.has-no-effect", "the command after --"),
    (("loader-grid", "--scale", "2"), None, "cli.has-no-effect", "--scale"),
    (("loader-grid", "--data", "x"), None, "cli.has-no-effect", "--data"),
    (("loader-grid", "--half-width", "1%"), None, "cli.option-alone", "--half-width has no effect without --budget"),
    (("loader-grid", "--workers", "2", "--batches", "8"), None, "cli.one-cell", "--workers"),
    (("loader-grid", "--workers", "1000", "--batches", "8,16"), None, "cli.too-large-settings", "loader-w1000-b8-p2"),
    (("advise",), None, "cli.nothing-to-advise-on", "envkit advise -- python train.py"),
    (("advise", "--"), None, "cli.nothing-to-advise-on", "envkit advise -- python train.py"),
    (("advise", "train.py"), None, "cli.dashes-missing", "envkit advise -- train.py"),
    (("advise", "--pid", "1", "--", "true"), None, "cli.either-or", "--pid"),
    (("advise", "--pid", "1", "--budget", "4m"), None, "cli.has-no-effect", "--budget"),
    (("advise", "--watch-only", "--budget", "4m", "--", "true"), None, "cli.has-no-effect", "--budget"),
    (("advise", "--watch-only", "--max-memory", "4%", "--", "true"), None, "cli.has-no-effect", "--max-memory"),
    (("advise", "--pid", "1", "--max-memory", "0%"), None, "cli.has-no-effect", "--max-memory"),
    (("advise", "--resume", "x", "--", "true"), None, "cli.has-no-effect", "the command after --"),
    (("advise", "python", "a b.py"), None, "cli.dashes-missing", "envkit advise -- python 'a b.py'"),
    (("exec", "baseline", "python", "a b.py"), None, "cli.dashes-missing", "envkit exec baseline -- python 'a b.py'"),
    (("exec", "baseline"), None, "cli.dashes-missing", "envkit exec baseline -- python train.py"),
    (("exec", "basline", *TRUE), None, "profiles.unknown-profile", "'basline'"),
    (("exec", "baseline", "--evidence", "no/x.json", *TRUE), None, "cli.no-place-for-evidence", "--evidence no/x.json"),
    (("exec", "baseline", "--evidence", "x.json", "--no-check", *TRUE), None, "cli.no-evidence", "--no-check"),
    (("exec", "baseline", "--engine", "lxc", *TRUE), None, "common.unknown-word", "'lxc'"),
    (("exec", "baseline", "--memory", "4g", *TRUE), None, "engines.option-without-effect", "--memory"),
    (("exec", "baseline", "--python", "/no/python", *TRUE), None, "engines.no-interpreter", "--python /no/python"),
    (("exec", "baseline", "--"), None, "cli.nothing-after-dashes", "envkit exec baseline -- python train.py"),
    (("exec", "baseline", "--gpus", "--", "true"), None, "cli.gpus-on-machine", "--gpus"),
    (("exec", "baseline", "--keep-env", "NOT_SET", "--", "true"), None, "bench.variable-not-set", "NOT_SET"),
    (("explain", "KMP_BLOKTIME"), None, "cli.unknown-variable", "'KMP_BLOCKTIME'"),
    (("export", "--format", "parquet"), None, "cli.not-for-terminal", "--output"),
    (("export", "--format", "csv", "."), None, "cli.holds-no-runs", "."),
    (("fleet", "report"), None, "cli.fleet-takes", "envkit fleet report DIR"),
    (("fleet", "report", ".", "--blocks", "9"), None, "cli.has-no-effect", "--blocks"),
    (("fleet", "diff", "a"), None, "cli.fleet-takes", "envkit fleet diff THEN NOW"),
    (("fleet", "intel-omp", "jemalloc"), None, "cli.several-judges", "--profile"),
    (("fleet", "intel-omp", "--profile", "jemalloc"), None, "cli.judge-not-measured", "--profile jemalloc"),
]  # fmt: skip

# Of these the texts are in the tests of their commands. There are a folder of a run, ``full``, and a file, ``file``.
BAD = [
    # profiles and files
    "bench intel-omp nosuch",
    "bench ./missing.yaml",
    "matrix baseline",
    "ablate glibc-retain --budget 1s",
    "plan nosuch",
    "compare-engines nosuch --engines local,docker",
    "submit nosuch --dry-run",
    "loader-grid nosuch",
    "breakdown nosuch",
    "breakdown intel-omp nosuch",
    "env nosuch",
    "doctor nosuch",
    # budgets
    "bench intel-omp --budget 3s",
    "bench intel-omp jemalloc glibc-retain --budget 3s",
    "matrix --budget 10s",
    "matrix glibc-retain intel-omp physical-cores --budget 3s",
    "plan --budget 3s",
    "plan intel-omp --budget 3s",
    "compare-engines baseline --engines local,docker --budget 3s",
    "ablate intel-omp-jemalloc-retain --budget 10s",
    "tune --budget 1s",
    "loader-grid --budget 3s",
    # options that do not go together
    "bench intel-omp --metric x",
    "bench intel-omp --backend gloo",
    "bench intel-omp --backend nccl --nproc 2",
    "bench intel-omp --workload nosuch",
    "bench intel-omp --workload missing.yaml",
    "bench intel-omp --instances 2 --nproc 2",
    "bench intel-omp --nproc 7 --workload cnn",
    # engines
    "bench intel-omp --engine docker --sif x.sif",
    "bench intel-omp --engine apptainer --sif missing.sif",
    "bench intel-omp --python ./missing/python",
    "explain KMP_BLOCKTIME --engine nosuch",
    "doctor --engine nosuch",
    # folders
    "bench intel-omp --resume missing",
    "bench intel-omp --resume missing --output other",
    "bench intel-omp --output full",
    "matrix --output full",
    "ablate intel-omp-jemalloc-retain --output full",
    "tune --output full",
    "plan --output full",
    "plan intel-omp --output full",
    "loader-grid --output full",
    "bench intel-omp --output file/run",
    "report missing",
    "export --format csv missing",
    "history missing",
    "baseline save x --from missing",
    "baseline check missing",
    "baseline diff a b",
    # search
    "tune --space nosuch",
    "tune --blocks 3",
    "tune --exhaustive --budget 3m",
    "tune --profile x.txt",
    "tune --nproc 2 --space nosuch",
    # the rest
    "fleet report missing",
    "fleet diff a b",
    "advise --watch-only --output x -- true",
    "advise --budget 0.1s -- true",
    "doctor --watch 3s",
    "doctor intel-omp -- true",
    "env intel-omp --format docker",
    # commands of the user's
    "bench glibc-retain -- nosuchcommand train.py",
    "bench glibc-retain -- ./nosuchcommand",
    "bench glibc-retain -- ./file",
    "bench glibc-retain -- python nosuch.py --epochs 1",
    "bench glibc-retain -- python -u -X dev nosuch.py",
    "bench glibc-retain --engine podman -- python nosuch.py",
    "matrix -- nosuchcommand",
    "tune -- nosuchcommand",
    "ablate intel-omp-jemalloc-retain -- nosuchcommand",
    "plan -- nosuchcommand",
    "plan glibc-retain -- nosuchcommand",
    "compare-engines baseline --engines local,podman -- python nosuch.py",
    "advise -- nosuchcommand",
    "advise -- python nosuch.py",
    "doctor -- nosuchcommand",
    "doctor -- python nosuch.py",
]  # fmt: skip

# Codes whose sentence has no second half, as what is wrong says what is to be given, or why nothing can be.
ONE_CLAUSE = {
    "profiles.no-profile-file", "profiles.name-is-not-file", "profiles.extends-unknown", "common.not-a-mapping",
    "common.invalid-yaml", "cli.no-interval", "cli.too-few-engines", "cli.too-few-blocks-for-noise",
    "cli.nothing-to-advise-on", "cli.dashes-missing", "cli.either-or", "cli.nothing-after-dashes",
    "cli.unknown-variable", "cli.not-for-terminal", "cli.several-judges",
}  # fmt: skip


def innermost(message: Message | str) -> Message:
    """Return what is wrong with a file, without the place."""
    assert isinstance(message, Message)
    return innermost(message.problem) if isinstance(message, InFile) else message


@pytest.fixture
def nothing_starts(tmp_path, monkeypatch):
    """Have the test fail if from its call on a process starts, or if a file or the beginning of a record is left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    started: list[object] = []
    before: list[Path] = []

    def start(self: object, arguments: object, *rest: object, **options: object) -> None:
        started.append(arguments)
        raise OSError(f"started {arguments}")

    monkeypatch.setattr(subprocess.Popen, "__init__", start)
    yield lambda: before.extend(sorted(tmp_path.rglob("*")))
    assert started == []
    assert sorted(tmp_path.rglob("*")) == before
    assert not measuring.results().exists()


@pytest.mark.parametrize(("command", "content", "code", "named"), TABLE)
def test_refusal(refused, nothing_starts, monkeypatch, command, content, code, named):
    if content is not None:
        Path(FILE).write_text(content)
    nothing_starts()
    caught, run = [], cli._run

    def catch(argv):
        try:
            return run(argv)
        except InputError as error:
            caught.append(error)
            raise

    monkeypatch.setattr(cli, "_run", catch)
    line = refused(*command)
    (error,) = caught
    assert innermost(error.message).code == code
    assert named in text_of(error)
    assert line == f"envkit: {text_of(error)}"
    assert "; " in line or code in ONE_CLAUSE, "it says what to do, too"


@pytest.mark.parametrize("line", BAD)
def test_nothing_starts_and_nothing_is_left(refused, nothing_starts, tmp_path, line):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/record.jsonl").write_text("{}\n")
    (tmp_path / "file").write_text("")
    nothing_starts()
    refused(*line.split())


def test_more_arms_than_a_record_may_have(refused, tmp_path, write_profile):
    files = [write_profile(f"mine{number}", f"env: {{OMP_NUM_THREADS: '{number + 1}'}}\n") for number in range(500)]
    said = "501 arms or comparisons are too many for one run, which can have 500; measure them in several"
    assert said in refused("bench", *files, "--output", tmp_path / "run", cwd=tmp_path)
    assert not (tmp_path / "run").exists()
