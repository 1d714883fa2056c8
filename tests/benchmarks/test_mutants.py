"""Mutants: each kind of change, the sample, and which mutants of a small project its tests kill."""

from __future__ import annotations

import ast

import pytest

from benchmarks import mutants, mutations
from benchmarks.errors import ScriptError
from benchmarks.mutants import KILLED, NOT_REACHED, SURVIVED, TIMED_OUT, Copy
from benchmarks.results import Results

CHANGES = (
    ("return a < b", "comparison negated", "(a >= b)"),
    ("return a < b", "comparison at its boundary", "(a <= b)"),
    ("return a is not b", "comparison negated", "(a is b)"),
    ("return not a", "not dropped", "(a)"),
    ("return -a", "sign dropped", "(a)"),
    ("return a - b", "operator", "(a + b)"),
    ("a *= b", "operator", "a /= b"),
    ("return a and b", "and or or", "(a or b)"),
    ("return 3", "constant", "(4)"),
    ("return True", "constant", "(False)"),
    ("return max(a, b)", "function", "(min(a, b))"),
    ("return a", "returns None", "None"),
    ("if a: b = a", "condition negated", "(not (a))"),
    ("a.clear()", "statement dropped", "pass"),
    ("while a: break", "break or continue", "continue"),
)
TOY = '''"""A project."""


def size(a: int, b: int = 1) -> str:
    """Say how large a is."""
    if a > b:
        return "large"
    return "small"


def count(a: int) -> int:
    while a < 3:
        a += 1
    return a


def unused(a: int) -> bool:
    return not a
'''
TESTS = """
from envkit.stats.toy import count, size


def test_size():
    assert size(3) == "large"
    assert size(0) == "small"


def test_count():
    assert count(0) == 3


def test_fails():
    assert size(0) == "large"
"""


def of(source: str) -> list[tuple[mutations.Mutant, str]]:
    return list(mutations.mutants("toy", "toy.py", source))


@pytest.mark.parametrize(("line", "change", "after"), CHANGES)
def test_makes_each_kind_of_change(line, change, after):
    source = 'def f(a, b):\n    """Ä."""\n    {}  # é\n'
    changed = {mutant.change: (mutant, text) for mutant, text in of(source.format(line))}
    mutant, text = changed[change]
    assert mutant.after == after
    assert text == source.format(line.replace(mutant.before, after, 1))
    ast.parse(text)


def test_negates_the_condition_of_an_expression():
    texts = [
        text for mutant, text in of("def f(a, b):\n    return b if a else 1\n") if mutant.change == "condition negated"
    ]
    assert texts == ["def f(a, b):\n    return (b if not a else 1)\n"]


@pytest.mark.parametrize("line", ["x: Literal[1] = a", "return f'{a < b}'", "return None", "return 'a' + b", "raise a"])
def test_changes_no_annotation_and_no_text(line):
    assert {mutant.change for mutant, _ in of(f"def f(a: Literal[1], b) -> 2:\n    {line}\n")} <= {"returns None"}


def test_an_id_does_not_depend_on_comments_docstrings_types_and_other_functions():
    first = of("def f(a: int) -> int:\n    return -a\n")
    moved = of('def g():\n    pass\n\n\ndef f(a):\n    """Return -a."""\n    # why\n    return -a\n')
    other = of("def f(a):\n    return -a + 1\n")
    assert [one.id for one, _ in first] == [one.id for one, _ in moved]
    assert not {one.id for one, _ in first} & {one.id for one, _ in other}


def test_a_method_has_its_class_in_its_name():
    assert {one.function for one, _ in of("class A:\n    def f(self):\n        return self.x\n")} == {"A.f"}


def test_draws_as_many_of_each_package_and_the_same_with_one_seed():
    made = [one for name in ("a", "b", "c") for one in mutations.mutants(f"envkit.{name}.x", "x.py", TOY)]
    sample = [mutant.id for mutant, _ in mutants.drawn(made, 1, 6)]
    assert [id.split(".")[1] for id in sample] == ["a", "b", "c"] * 2
    assert sample == [mutant.id for mutant, _ in mutants.drawn(made[::-1], 1, 6)]
    assert sample != [mutant.id for mutant, _ in mutants.drawn(made, 2, 6)]
    assert len(mutants.drawn(made, 1, 1000)) == len(made)


@pytest.fixture
def project(tmp_path):
    """A project whose tests do not reach one of its functions, and of which one test fails anyway."""
    folder = tmp_path / "project"
    for path, text in {
        "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests']\n", "runner/envkit/__init__.py": "",
        "runner/envkit/stats/__init__.py": "", "runner/envkit/stats/toy.py": TOY, "tests/stats/test_toy.py": TESTS,
        "results/large": "", "docs/results/page.md": "",
    }.items():  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def copy(project, tmp_path):
    return Copy(tmp_path / "scratch", project, ("stats",))


def test_tells_a_killed_mutant_from_others(copy, project):
    made = {(mutant.before, mutant.after): (mutant, text) for mutant, text in copy.mutants()}
    wanted = [("a > b", "(a <= b)"), ("a > b", "(a >= b)"), ("not a", "(a)")]
    reach = copy.reach([made[one][0] for one in wanted])
    assert [one.test.partition("::")[2] for one in reach if one.lines] == ["test_size"]
    judged = [copy.judge(*made[one], reach) for one in wanted]
    assert [line["outcome"] for line in judged] == [KILLED, SURVIVED, NOT_REACHED]
    assert judged[0]["test"] == "tests/stats/test_toy.py::test_size"
    for folder in (project, copy.folder):
        assert (folder / "runner/envkit/stats/toy.py").read_text() == TOY
    assert not (copy.folder / "results").exists()
    assert (copy.folder / "docs/results/page.md").exists()


def test_ends_a_mutant_that_does_not_end(copy, monkeypatch):
    monkeypatch.setattr(mutants, "PATIENCE_S", 2)
    made = list(copy.mutants())
    (endless,) = [one for one in made if one[0].after == "a -= 1"]
    assert copy.judge(*endless, copy.reach([endless[0]]))["outcome"] == TIMED_OUT


@pytest.fixture
def earlier(copy, results_file):
    """The results of a sample of four mutants, of which each was killed."""
    results = Results(results_file, {"seed": 1})
    changes = {"(a <= b)", "(a >= b)", "(4)", "(a)"}
    for mutant in (one for one, _ in copy.mutants() if one.after in changes):
        results.append("mutant", **mutant.to_json(), outcome=KILLED, test="t", commit="c")
    return results


def test_judges_unchanged_functions_again_wherever_they_are(copy, earlier, results_file, capsys):
    module = copy.folder / "runner/envkit/stats/toy.py"
    module.rename(module.with_name("moved.py"))
    moved = module.with_name("moved.py").read_text().replace("return not a", "return a == 0")
    module.with_name("moved.py").write_text(moved)
    tests = copy.folder / "tests/stats/test_toy.py"
    tests.write_text(TESTS.replace("stats.toy", "stats.moved").replace("assert size(3)", "assert size(2)"))
    unchanged = [one for one in earlier.of("mutant") if one["function"] != "unused"]
    assert mutants.rerun(copy, results_file, []) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert f"killed -> {SURVIVED}: envkit.stats.moved:size@" in "\n".join(lines)
    assert len(lines) == len(unchanged)
    assert last.startswith(
        f"unchanged: {len(unchanged)} of {len(earlier.of('mutant'))}; killed before: {len(unchanged)}"
    )


def test_the_page_has_each_survivor_with_its_explanation(benchmark_script, files, results_file, page_file):
    results = Results(results_file, {"seed": mutants.SEED})
    survivor, killed = [one for one, _ in of(TOY)][:2]
    results.append("mutant", **survivor.to_json(), outcome=SURVIVED, tests=2, of=3, test=None, commit="c")
    results.append("mutant", **killed.to_json(), outcome=KILLED, test="tests/t.py::t", commit="c")
    assert benchmark_script(mutants, *files, "--explain", survivor.id, "Both are large.").returncode == 0
    text = page_file.read_text()
    assert "1 of 2 (" in text
    assert "| 2 of 3 | Both are large. |" in text
    assert "`tests/t.py::t`" in text


def test_refuses_what_is_no_earlier_file(tmp_path, copy):
    (tmp_path / "other").write_text("x")
    with pytest.raises(ScriptError):
        mutants.rerun(copy, tmp_path / "other", [])
