"""Commands of one's own: their words, and the workload files that keep them; what is read, and what is refused."""

from __future__ import annotations

import json

import pytest
from envkit.cli import workload_file
from envkit.cli.workload_file import CommandError, load, words
from envkit.cli.workload_messages import QUOTE_IT, SINGLE_QUOTES, ForAShell
from envkit.common.errors import InputError
from envkit.common.messages import WritableFile
from envkit.engines.base import PROJECT
from envkit.rendering import text_of
from envkit.worker.request import UserCommand
from envkit.worker.user_command.units import CHOICES

from tests.docs.shell_blocks import blocks
from tests.refusals import assert_refused


@pytest.mark.parametrize(
    ("text", "line", "key", "fix"),
    [
        ("", 1, "a workload file is a mapping", "for example 'name: mine'"),
        ("metric: step", 1, "'command' is missing", "say what starts the training, as command: python train.py"),
        ("command: python train.py\nmetrik: step", 2, "'metrik'", "(did you mean 'metric'?); the keys are: name, "),
        ("command: 3", 1, "'command' must be a text or a list", "as command: python train.py"),
        ("command:", 1, "'command' must be a text or a list", "as command: python train.py"),
        ("command: [[python]]", 1, "'command.0'", "give one word"),
        ("command: []", 1, "command: is empty", "as command: python train.py"),
        ("command: ['']", 1, "command: is empty", "as command: python train.py"),
        ("command: ' '", 1, "command: is empty", "as command: python train.py"),
        ('command: [python, "a\\0b"]', 1, "'command.1' has a NUL character", "remove it"),
        ('command: "python \\uD83D"', 1, "'command' has half of a character (\\ud83d)", "remove it"),
        ("command: \"sh -c 'echo\"", 1, "command: no closing quotation", "close it"),
        ("command: a && b", 1, "command: '&&' needs a shell, and this command runs without "
                               "one", "use bash -c '…', or quote it"),
        ("command: |\n  cd x\n  python train.py", 1, "command: a line break ends", "or end the line with a '\\'"),
        ("command: python\nname: [a]", 2, "'name' must be a text", "put a text in quotes"),
        ("command: python\nname:", 2, "'name' must be a text", "put a text in quotes"),
        ("command: python\nfolder: ' '", 2, "'folder' can't be ''", "put a text in quotes"),
        ("command: python\nmetric: 3", 2, "'metric' must be a text, not 3", "put a text in quotes"),
        ("command: python\nmetric: 'a('", 2, "metric: 'a(' is not a regular expression", "unterminated subpattern at "),
        ("command: python\nunit: ms", 2, "'unit' has no effect without 'metric'", "add 'metric', or remove 'unit'"),
        ("command: python\nwhole_command: true\nwarmup_lines: 2", 3, "'warmup_lines' has no effect with", "remove one"),
        ("command: python\nin_place: true\nlink: [data]", 3, "'link' has no effect with 'in_place'", "remove one"),
        ("command: python\nwhole_command: true\nmetric: step", 3, "'metric' has no effect with 'whole_", "remove one"),
        ("command: python\noptimizer_steps: 0", 2, "'optimizer_steps' must be 1 or more, not 0", "it is how many"),
        ("command: python\noptimizer_steps: few", 2, "'optimizer_steps' must be a whole number", "it is how many"),
        ("command: python\nmetric: step\noptimizer_steps: 9", 3, "has no effect with 'metric'", "remove one of them"),
        ("command: python\noptimizer_steps: 9\nunit: ms", 3, "'unit' has no effect without 'metric'", "remove 'unit'"),
        ("command: python\noptimizer_steps: 9\nwarmup_lines: 0", 3, "'warmup_lines' must be 1 or more", "a first step"),
        ("command: python\noptimizer_steps: 9\nwarmup_lines: few", 3, "'warmup_lines' must be a whole", "first steps"),
        ("command: python\nmetric: t=(.)\nunit: m", 3, "'unit'", "(did you mean 'ms'?); the choices are: s, ms, us, "),
        ("command: python\nmetric: step\nunit: ms", 2, "metric: 'step' has no group", "or leave the unit out"),
        ("command: python\nmetric: step\nwarmup_lines: few", 3, "'warmup_lines' must be a whole number", "readings"),
        ("command: python\nmetric: step\nwarmup_lines: -1", 3, "'warmup_lines' must be 0 or more", "first readings"),
        ("command: python\nmetric: step\nwarmup_lines: 1.0", 3, "'warmup_lines' must be a whole number", "readings"),
        ("command: python\nloss_metric: 3", 2, "'loss_metric' must be a text, not 3", "put a text in quotes"),
        ("command: python\nloss_metric: loss", 2, "loss_metric: 'loss' has no group", r"as in loss (\S+)"),
        ("command: python\nloss_metric: (a)(b)", 2, "loss_metric: '(a)(b)' has 2 groups", "write the others (?:…)"),
        ("command: python\nfolder: gone", 2, "there is no folder FOLDER/gone", "the path is relative to this file"),
    ],
)  # fmt: skip
def test_workload_files_that_are_refused(tmp_path, text, line, key, fix):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert_refused(load, file, line, key.replace("FOLDER", str(tmp_path)), fix)


def test_a_workload_file_s_schema_has_the_units_that_there_are():
    known = json.loads(workload_file.SCHEMA.read_text())["properties"]["unit"]["enum"]
    assert known == list(CHOICES)


def test_a_workload_file(tmp_path):
    (tmp_path / "code").mkdir()
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: my training\ncommand: [python, train.py, --lr, 1e-3]\nfolder: code\nmetric: 'time ([0-9.]+) ms'\n"
        "unit: ms\nwarmup_lines: 10\n"
    )
    argv = ("python", "train.py", "--lr", "1e-3")
    folder = str(tmp_path / "code")
    assert load(file) == ("my training", UserCommand(argv, folder, "time ([0-9.]+) ms", "ms", 10))
    file.write_text("command: python\nloss_metric: $.loss\n")
    by_pace = UserCommand(("python",), str(tmp_path), loss_metric="$.loss", optimizer_steps=0)
    assert load(file) == ("mine", by_pace)
    file.write_text("command: python\nlink: [data, big]\n")
    assert load(file)[1].links == ("data", "big")
    file.write_text("command: python\nin_place: true\n")
    assert load(file)[1].in_place
    file.write_text("command: python\nwhole_command: true\n")
    assert load(file) == ("mine", UserCommand(("python",), str(tmp_path)))
    for text, left_out in (("", 3), ("warmup_lines: 5", 5)):
        file.write_text(f"command: python\noptimizer_steps: 9\n{text}\n")
        own = UserCommand(("python",), str(tmp_path), warmup_lines=left_out, optimizer_steps=9)
        assert load(file) == ("mine", own)
    file.write_text("command: python 'my train.py'\n")
    assert load(file) == ("mine", UserCommand(("python", "my train.py"), str(tmp_path), optimizer_steps=0))


# --- what a shell would do to a command ---


@pytest.mark.parametrize(
    ("command", "what", "quoting"),
    [
        ("cd x && python train.py", "&&", QUOTE_IT),
        ("cd x;python train.py", ";", QUOTE_IT),
        ("python train.py || true", "||", QUOTE_IT),
        ("python train.py|tee log", "|", QUOTE_IT),
        ("python train.py > log", ">", QUOTE_IT),
        ("python train.py 2>&1", ">", QUOTE_IT),
        ("python train.py>>log", ">>", QUOTE_IT),
        ("python train.py < in", "<", QUOTE_IT),
        ("python train.py &", "&", QUOTE_IT),
        ("python train.py 'a;b'; true", ";", QUOTE_IT),
        ("OMP_NUM_THREADS=4 python train.py", "OMP_NUM_THREADS=", QUOTE_IT),
        ("python ~/train.py", "~", QUOTE_IT),
        # what it would replace, also between double quotes
        ("python train.py --data $HOME/data", "$HOME", SINGLE_QUOTES),
        ('python train.py --data "$HOME/data"', "$HOME", SINGLE_QUOTES),
        ("python train.py --data ${DATA}", "${", SINGLE_QUOTES),
        ("python train.py --epochs $(cat epochs)", "$(", SINGLE_QUOTES),
        ("python train.py `cat options`", "`", SINGLE_QUOTES),
        ("bash -c 'python train.py' $1", "$1", SINGLE_QUOTES),
    ],
)
def test_a_shell_s_syntax_is_refused(command, what, quoting):
    with pytest.raises(CommandError) as refused:
        words(command)
    assert refused.value.message == ForAShell(what, quoting)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("bash -c 'cd x && A=1 python train.py > log'", ["bash", "-c", "cd x && A=1 python train.py > log"]),
        ('python -c "a = \\"b;\\"; c"', ["python", "-c", 'a = "b;"; c']),
        (r"python x.py --between=a\;b '<' --url='?a&b'", ["python", "x.py", "--between=a;b", "<", "--url=?a&b"]),
        ("env A=1 python train.py lr=0.1", ["env", "A=1", "python", "train.py", "lr=0.1"]),
        ("python train.py \\\n  --epochs 1\n", ["python", "train.py", "--epochs", "1"]),
        (r"""python '^a$' "b$" '$HOME' \$x""", ["python", "^a$", "b$", "$HOME", "$x"]),
        ('sh -c "echo $HOME"', ["sh", "-c", "echo $HOME"]),
        ("python -c 'a = 1\nb = 2'", ["python", "-c", "a = 1\nb = 2"]),
    ],
)
def test_quoted_it_is_a_word_s(command, argv):
    assert words(command) == argv


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("command: [touch, STARTED]\nwhole_command: true\n")
    return path


def test_what_a_file_starts_is_shown_first(cli, job, tmp_path):
    result = cli("bench", "interleave", "--workload", job, "--dry-run").ended(0)
    assert result.stderr.splitlines()[0] == f"envkit: {job} starts, in {tmp_path}: touch STARTED"
    json.loads(result.stdout)  # beside what the command prints


@pytest.mark.parametrize(
    "arguments", [("bench", "interleave"), ("tune",), ("plan", "interleave"), ("matrix", "interleave")]
)
def test_a_file_that_others_can_write_starts_nothing(cli, job, tmp_path, arguments):
    job.chmod(0o666)
    result = cli(*arguments, "--workload", job).ended(2, stdout="")
    assert result.stderr == f"envkit: {text_of(InputError(WritableFile(str(job), ('chmod', 'go-w', str(job)))))}\n"
    assert not (tmp_path / "STARTED").exists()


def test_a_file_that_others_can_replace_starts_nothing(cli, job, tmp_path):
    tmp_path.chmod(0o777)
    result = cli("bench", "interleave", "--workload", job).ended(2)
    assert f"because they can write to {tmp_path}; move it to a folder of your own" in result.stderr


def test_the_guide_s_workload_file_is_one(tmp_path):
    (shown,) = (block for block in blocks(PROJECT / "docs/own-script.md") if block.lines[0] == "# train.yaml")
    (tmp_path / "train.yaml").write_text("\n".join(shown.lines))
    name, own = load(tmp_path / "train.yaml")
    assert (name, own.argv, own.unit) == ("my training", ("python", "train.py", "--epochs", "1"), "ms")
