"""Commands of one's own that are refused, in one line and before anything runs."""

from __future__ import annotations

import json

import pytest

from runner.cli.workload_file import load
from runner.common.errors import InputError
from runner.worker.workloads import WORKLOADS

OWN = ("--command", "python train.py --epochs 1")
METRIC = ("--metric", r"time ([\d.]+) ms", "--unit", "ms", "--warmup-lines", 2)
MODES = (("--precision", "bf16-autocast"), ("--compile",), ("--channels-last",), ("--scale", 2))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--metric", "step"], "--metric means nothing without --command; add it, or leave this out"),
        (["--unit", "ms"], "--unit means nothing without --command; add it, or leave this out"),
        (["--warmup-lines", 3], "--warmup-lines means nothing without --command; add it, or leave this out"),
        (["--command", ""], "--command is empty; give what starts your training, as 'python train.py'"),
        (["--command", "  "], "--command is empty; give what starts your training, as 'python train.py'"),
        (["--command", "sh -c 'echo"], "--command sh -c 'echo: no closing quotation; close it"),
        ([*OWN, "--unit", "ms"], "--unit means nothing without --metric; add it, or leave this out"),
        ([*OWN, "--warmup-lines", 3], "--warmup-lines means nothing without --metric; add it, or leave this out"),
        ([*OWN, "--metric", r"(\d+)", "--unit", "sec"],
         "--unit sec: no such unit; there are: s, ms, us, per-second"),
        ([*OWN, "--metric", "step", "--unit", "ms"], "--metric 'step' has no group that could be a number with a unit; "
         "put one around the number, or leave the unit out"),
        ([*OWN, "--metric", "time ("],
         "--metric 'time (' is no regular expression: missing ), unterminated subpattern at position 6"),
        ([*OWN, "--metric", r"(\d+)/(\d+)"],
         r"--metric '(\d+)/(\d+)' has 2 groups, and one can be a step's time; write the others (?:…)"),
        ([*OWN, "--metric", "$.a."],
         "--metric '$.a.' is no path at position 4 ('.'); write it like $.train.step_time, $.times[0] or $['a/b']"),
        ([*OWN, "--metric", r"([\d.]+) ?it/s"],
         r"--metric '([\d.]+) ?it/s' looks like a rate, and would be taken "
         "for seconds; give the unit per-second, or s if that is right"),
        ([*OWN, "--metric", r"time (\S+) ?ms"],
         r"--metric 'time (\S+) ?ms' looks like a number of ms, and would be taken "
         "for seconds; give the unit ms, or s if that is right"),
        ([*OWN, "--metric", ""], "--metric '' is empty; give a regular expression, or a path as $.step_time"),
        ([*OWN, "--workload", "cnn"], "--command and --workload both say what to measure; leave one out"),
        ([*OWN, "--full"],
         "--full means nothing to a command of your own; leave it out, and give the command options of its own"),
        ([*OWN, "--steps", 3],
         "--steps means nothing to a command of your own; leave it out, and give the command options of its own"),
        ([*OWN, "--data", "synthetic"],
         "--data means nothing to a command of your own; leave it out, and give the command options of its own"),
        ([*OWN, "--warmup-steps", 3],
         "--warmup-steps means nothing to a command of your own; leave it out, and give --warmup-lines"),
    ],
)  # fmt: skip
def test_options_that_are_refused(refused, tmp_path, options, line):
    assert refused("bench", "baseline", *options, "--output", tmp_path / "run") == f"envkit: {line}"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", [("bench", "baseline"), ("matrix", "jemalloc"), ("tune",)])
def test_how_to_train_is_its_own_affair(refused, tmp_path, command, mode):
    line = refused(*command, *OWN, *mode, "--output", tmp_path / "run")
    assert line.startswith(f"envkit: {mode[0]} means nothing to a command of your own; leave it out, and give the ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("cd x && python train.py", "&&"),
        ("cd x;python train.py", ";"),
        ("python train.py || true", "||"),
        ("python train.py|tee log", "|"),
        ("python train.py > log", ">"),
        ("python train.py 2>&1", ">"),
        ("python train.py>>log", ">>"),
        ("python train.py < in", "<"),
        ("python train.py &", "&"),
        ("python train.py 'a;b'; true", ";"),
        ("OMP_NUM_THREADS=4 python train.py", "OMP_NUM_THREADS="),
        ("python ~/train.py", "~"),
    ],
)
def test_a_shells_syntax_is_refused(refused, tmp_path, command, what):
    why = f"'{what}' is for a shell, and none reads this; use bash -c '…', or quote it"
    line = refused("bench", "baseline", "--command", command, "--output", tmp_path / "run")
    assert line == f"envkit: --command {command}: {why}"
    (tmp_path / "mine.yaml").write_text(f"command: {json.dumps(command)}\n")
    with pytest.raises(InputError) as error:
        load(tmp_path / "mine.yaml")
    assert str(error.value) == f"{tmp_path}/mine.yaml:1: command: {why}"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("python train.py --data $HOME/data", "$HOME"),
        ('python train.py --data "$HOME/data"', "$HOME"),
        ("python train.py --data ${DATA}", "${"),
        ("python train.py --epochs $(cat epochs)", "$("),
        ("python train.py `cat options`", "`"),
        ("bash -c 'python train.py' $1", "$1"),
    ],
)
def test_what_a_shell_would_replace_is_refused(refused, tmp_path, command, what):
    why = f"'{what}' is for a shell, and none reads this; use bash -c '…', or single quotes"
    line = refused("bench", "baseline", "--command", command, "--output", tmp_path / "run")
    assert line == f"envkit: --command {command}: {why}"


def test_a_second_line_is_refused(refused, tmp_path):
    why = "a line break ends a command for a shell, and none reads this; use bash -c '…', or end the line with a '\\'"
    line = refused("bench", "baseline", "--command", "cd x\npython train.py", "--output", tmp_path / "run")
    assert line == f"envkit: --command cd x python train.py: {why}"
    (tmp_path / "mine.yaml").write_text("command: |\n  cd x\n  python train.py\n")
    with pytest.raises(InputError) as error:
        load(tmp_path / "mine.yaml")
    assert str(error.value) == f"{tmp_path}/mine.yaml:1: command: {why}"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("bash -c 'cd x && A=1 python train.py > log'", ["bash", "-c", "cd x && A=1 python train.py > log"]),
        ('python -c "a = \\"b;\\"; c"', ["python", "-c", 'a = "b;"; c']),
        (
            r"python train.py --between=a\;b '<' --url='?a&b'",
            ["python", "train.py", "--between=a;b", "<", "--url=?a&b"],
        ),
        ("env A=1 python train.py lr=0.1", ["env", "A=1", "python", "train.py", "lr=0.1"]),
        ("python train.py \\\n  --epochs 1\n", ["python", "train.py", "--epochs", "1"]),
        (r"""python '^a$' "b$" '$HOME' \$x""", ["python", "^a$", "b$", "$HOME", "$x"]),
        ('sh -c "echo $HOME"', ["sh", "-c", "echo $HOME"]),
        ("python -c 'a = 1\nb = 2'", ["python", "-c", "a = 1\nb = 2"]),
    ],
)
def test_quoted_it_is_a_words(tmp_path, command, words):
    (tmp_path / "mine.yaml").write_text(f"command: {json.dumps(command)}\n")
    assert list(load(tmp_path / "mine.yaml")[1].argv) == words


def test_a_workload_that_there_is_not(cli):
    result = cli("bench", "baseline", "--workload", "cn")
    assert result.returncode == 2
    there = f"there are: {', '.join(WORKLOADS)}, and a file like mine.yaml"
    assert result.stderr.splitlines()[-1].endswith(f"no workload 'cn' (did you mean 'cnn'?); {there}")
