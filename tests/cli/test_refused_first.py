"""What options, files and facts about this machine decide is refused before any process starts, and leaves nothing."""

from __future__ import annotations

import subprocess

import pytest
from envkit.cli import measuring

BAD = [
    # profiles and files
    "bench nosuch",
    "bench intel-omp nosuch",
    "bench ./missing.yaml",
    "matrix nosuch",
    "matrix baseline",
    "ablate nosuch",
    "ablate baseline",
    "ablate glibc-retain --budget 1s",
    "plan nosuch",
    "compare-engines nosuch --engines local,docker",
    "submit nosuch --dry-run",
    "loader-grid nosuch",
    "breakdown nosuch",
    "breakdown intel-omp nosuch",
    "exec nosuch -- true",
    "show nosuch",
    "env nosuch",
    "doctor nosuch",
    "explain NO_SUCH_VARIABLE",
    # units
    "bench intel-omp --budget 3",
    "matrix --budget 10",
    "tune --budget 3",
    # limits
    "bench intel-omp --max-memory 10",
    "matrix --max-memory much",
    "tune --max-memory=-1%",
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
    "bench intel-omp --epochs 2",
    "bench intel-omp --until accuracy=0.5",
    "bench intel-omp --full --budget 60s",
    "bench intel-omp --metric x",
    "bench intel-omp --unit ms",
    "bench intel-omp --weak",
    "bench intel-omp --backend gloo",
    "bench intel-omp --backend nccl --nproc 2",
    "bench intel-omp --half-width 3% --blocks 8",
    "bench intel-omp --workload nosuch",
    "bench intel-omp --workload missing.yaml",
    "bench intel-omp --workload translation --channels-last",
    "bench intel-omp --instances 2 --nproc 2",
    "bench intel-omp --instances 2 --full",
    "bench intel-omp --keep-env NO_SUCH_VARIABLE",
    "bench intel-omp --data nosuch",
    "bench intel-omp --workload loader --data synthetic",
    "bench intel-omp --nproc 7 --workload cnn",
    # engines
    "bench intel-omp --engine nosuch",
    "bench intel-omp --engine dokcer",
    "bench intel-omp --image x",
    "bench intel-omp --cpus 2",
    "bench intel-omp --engine docker --sif x.sif",
    "bench intel-omp --engine apptainer --sif missing.sif",
    "bench intel-omp --python nosuch-python",
    "bench intel-omp --python ./missing/python",
    "compare-engines baseline --engines local",
    "compare-engines baseline --engines local,nosuch",
    "show intel-omp --engine nosuch",
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
    "export --format parquet",
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
    "breakdown intel-omp --phases --forward",
    "breakdown intel-omp intel-omp",
    "fleet report missing",
    "fleet diff a b",
    "advise",
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


@pytest.mark.parametrize("line", BAD)
def test_nothing_starts_and_nothing_is_left(cli, tmp_path, monkeypatch, line):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/record.jsonl").write_text("{}\n")
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    started = []

    def start(self: object, arguments: object, *rest: object, **options: object) -> None:
        started.append(arguments)
        raise OSError(f"started {arguments}")

    monkeypatch.setattr(subprocess.Popen, "__init__", start)
    result = cli(*line.split(), cwd=tmp_path)
    assert started == []
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result
    assert sorted(tmp_path.rglob("*")) == before
    assert not measuring.results().exists()


def test_more_arms_than_a_record_may_have(cli, tmp_path, write_profile):
    files = [write_profile(f"mine{number}", f"env: {{OMP_NUM_THREADS: '{number + 1}'}}\n") for number in range(500)]
    result = cli("bench", *files, "--output", tmp_path / "run", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        "501 arms or comparisons are too many for one run, which can have 500; measure them in several" in result.stderr
    )
    assert not (tmp_path / "run").exists()
