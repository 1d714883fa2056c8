"""What a space may say, and the one line that a wrong one gets."""

from __future__ import annotations

import re

import pytest

from runner.engines.base import PROJECT
from runner.errors import InputError
from runner.profile import load
from runner.tuning import space_file
from runner.tuning.narrow import identity
from runner.tuning.space import allowed, choices, nearest, profile, shown
from tests.tuning.planted import resolve, write_space

SPIN = "  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0]}\n"
ALLOCATOR = """\
  allocator:
    choices:
      glibc:
      jemalloc: {preload: [jemalloc]}
"""
DECAY = "  decay: {when: {allocator: [jemalloc]}, variable: MALLOC_CONF, key: dirty_decay_ms, values: [unset, -1]}\n"


@pytest.fixture
def space(tmp_path):
    return lambda text: space_file.read(write_space(tmp_path, text))


@pytest.mark.parametrize("name", space_file.names())
def test_the_spaces_of_the_kit_are_right(name):
    space = space_file.read(space_file.find(name))
    assert space.name == name
    assert next(choices(space))


def test_the_shipped_profiles_to_look_at_first_are_named_and_must_be_there(space):
    assert space(f"first: [jemalloc-retain, glibc-retain]\nknobs:\n{SPIN}").first == ("jemalloc-retain", "glibc-retain")
    with pytest.raises(InputError, match=r":3: no shipped profile 'jemalloc-retian' \(did you mean 'jemalloc-retain"):
        space(f"first: [jemalloc-retian]\nknobs:\n{SPIN}")
    with pytest.raises(InputError, match="'first' must be a list of shipped profiles"):
        space(f"first: jemalloc\nknobs:\n{SPIN}")


def test_what_is_no_mapping_is_called_no_space(tmp_path):
    (tmp_path / "x.yaml").write_text("- a\n")
    with pytest.raises(InputError, match="a space is a mapping"):
        space_file.read(tmp_path / "x.yaml")


def test_a_knob_counts_only_with_the_labels_that_it_names(space):
    found = [shown(choice) for choice in choices(space(f"knobs:\n{ALLOCATOR}{DECAY}"))]
    assert found == ["allocator=glibc", "allocator=jemalloc", "allocator=jemalloc, decay=-1"]


def test_a_constraint_takes_combinations_away(space):
    constraint = "constraints:\n  - {never: {spin: [0], allocator: [jemalloc]}, because: a test}\n"
    found = [shown(choice) for choice in choices(space(f"knobs:\n{SPIN}{ALLOCATOR}{constraint}"))]
    assert found == ["allocator=glibc", "allocator=jemalloc", "spin=0, allocator=glibc"]


def test_what_labels_set_is_merged_into_one_profile(space):
    text = """knobs:
  keep: {choices: {yes: {settings: {MALLOC_CONF: {dirty_decay_ms: -1}}, preload: [jemalloc]}}}
  thp: {variable: MALLOC_CONF, key: thp, values: [always]}
  threads: {variable: OMP_NUM_THREADS, values: ["${physical_cores}"]}
  node: {choices: {first: {prefix: [numactl, --membind=0], numerics: may-differ, needs: {numa_nodes: 2}}}}
"""
    found = space(text)
    made = profile(found, next(choices(found)), "x")
    assert made.env == {"OMP_NUM_THREADS": "${physical_cores}", "MALLOC_CONF": "dirty_decay_ms:-1,thp:always"}
    assert (made.preload, made.prefix, made.numerics) == (("jemalloc",), ("numactl", "--membind=0"), "may-differ")
    assert made.needs == {"numa_nodes": 2}


def test_labels_that_contradict_each_other_make_no_profile(space):
    found = space("knobs:\n  a: {variable: OMP_DYNAMIC, values: [true, false]}\n"
                  "  b: {variable: OMP_DYNAMIC, values: [true, false]}\n")  # fmt: skip
    made = [profile(found, choice, "x") for choice in choices(found)]
    assert [one and one.env for one in made] == [{"OMP_DYNAMIC": "true"}, None, None, {"OMP_DYNAMIC": "false"}]


BAD = {
    "knobs: {}\n": (3, "'knobs' is empty"),
    "knob:\n" + SPIN: (3, "unknown key 'knob' in the file (did you mean 'knobs'?)"),
    "knobs:\n  a: {}\n": (4, "knob 'a' needs either 'choices' or 'variable' with 'values'"),
    "knobs:\n  a: {chioces: {}}\n": (4, "unknown key 'chioces' in knobs.a (did you mean 'choices'?)"),
    "knobs:\n  a: {choices: {}}\n": (4, "knob 'a' has no values"),
    "knobs:\n  a: {variable: OMP_DYNAMIC}\n": (4, "knob 'a' has no values; add for example 'values: [unset, …]'"),
    "knobs:\n  a:\n    variable: OMP_DYNAMIK\n    values: [unset]\n": (
        5, "'OMP_DYNAMIK' is not in the catalogue of variables (did you mean 'OMP_DYNAMIC'?); see: runner explain",
    ),
    "knobs:\n  a: {variable: LD_PRELOAD, values: [x]}\n": (4, "'LD_PRELOAD' is made from 'preload'"),
    "knobs:\n  a:\n    variable: OMP_DYNAMIC\n    values:\n    - unset\n    - maybe\n": (
        8, "OMP_DYNAMIC can't be 'maybe', which is none of its words; write one of true, false",
    ),
    "knobs:\n  a: {variable: MALLOC_CONF, key: thpp, values: [always]}\n": (
        4, "MALLOC_CONF has no key 'thpp' (did you mean 'thp'?); see: runner explain MALLOC_CONF",
    ),
    "knobs:\n  a: {variable: MALLOC_CONF, key: thp, values: [sometimes]}\n": (
        4, "MALLOC_CONF's thp can't be 'sometimes', which is none of its words; write one of always, never, default",
    ),
    "knobs:\n  a: {variable: OMP_NUM_THREADS, values: ['${cores}']}\n": (4, "unknown host fact 'cores'"),
    "knobs:\n  a: {variable: OMP_DYNAMIC, values: [true, true]}\n": (4, "'true' stands twice"),
    "knobs:\n  a: {choices: {x: {preload: [jemaloc]}}}\n": (4, "unknown library 'jemaloc' (did you mean 'jemalloc'?)"),
    "knobs:\n  a: {choices: {x: {envv: {}}}}\n": (4, "unknown key 'envv' in knobs.a.choices.x (did you mean 'env'?)"),
    "knobs:\n  a: {choices: {x: {needs: {sockets: 2}}}}\n": (4, "'sockets' is no host fact"),
    "knobs:\n" + SPIN + "  b: {when: {spinn: [0]}, variable: OMP_DYNAMIC, values: [true]}\n": (
        5, "knob 'b' counts when 'spinn', which is no knob (did you mean 'spin'?)",
    ),
    "knobs:\n" + SPIN + "  b: {when: {spin: [7]}, variable: OMP_DYNAMIC, values: [true]}\n": (
        5, "knob 'b' counts when spin is '7', which it never is; it is: unset, 0",
    ),
    "knobs:\n  b: {when: {spin: [0]}, variable: OMP_DYNAMIC, values: [true]}\n" + SPIN: (
        4, "knob 'b' counts when 'spin', which stands further down; move 'spin' before it",
    ),
    "knobs:\n" + SPIN + "constraints:\n- {never: {spinn: [0]}, because: x}\n": (
        6, "a constraint names 'spinn', which is no knob (did you mean 'spin'?)",
    ),
    "knobs:\n  keep: {choices: {no: , yes: {env: {MALLOC_CONF: 'thp:always'},\n"
    "    settings: {MALLOC_CONF: {thp: never}}}}}": (
        5, "'MALLOC_CONF' stands under 'env' too; write its keys here alone",
    ),
    "knobs:\n" + SPIN + "constraints:\n- {never: {spin: [9]}, because: x}\n": (
        6, "a constraint names spin is '9', which it never is; it is: unset, 0",
    ),
    "knobs:\n" + SPIN + "constraints:\n- {never: {spin: [0]}}\n": (6, "a constraint needs 'because: …'"),
    "knobs:\n" + SPIN + "constraints:\n- {never: {spin: [unset, 0]}, because: x}\n": (
        6, "this constraint excludes every choice: nothing would be left to try; narrow it",
    ),
    "knobs:\n" + ALLOCATOR + DECAY + "constraints:\n- {never: {allocator: [glibc], decay: [-1]}, because: x}\n": (
        10, "this constraint never applies: its values never come together; remove it",
    ),
    "knobs:\n" + SPIN + "constraints:\n- {never: {spin: [0]}, because: x}\n- {never: {spin: [unset]}, because: x}\n": (
        5, "the space is empty: each choice breaks a constraint or sets a variable twice; remove what does",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_a_bad_space_gets_one_line_with_file_line_key_and_mend(tmp_path, text):
    path = write_space(tmp_path, text)
    line, said = BAD[text]
    with pytest.raises(InputError) as caught:
        space_file.read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_space_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    with pytest.raises(InputError, match=re.escape("--space coarze: no such space (did you mean 'coarse'?)")):
        space_file.find("coarze")
    with pytest.raises(InputError, match="give a YAML file, or one of: coarse, default"):
        space_file.find(str(tmp_path / "none.yaml"))


def test_the_example_in_the_documentation_is_a_space(tmp_path):
    text = (PROJECT / "docs/tuning.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "mine.yaml").write_text(text)
    found = [shown(choice) for choice in choices(space_file.read(tmp_path / "mine.yaml"))]
    assert "runtime=gnu, allocator=glibc, spin=0" in found
    assert "runtime=intel, allocator=jemalloc, decay=-1" in found
    assert "runtime=gnu, allocator=jemalloc, spin=0" not in " ".join(found)


DEFAULT = space_file.read(space_file.find("default"))


@pytest.mark.parametrize("name", DEFAULT.first)
def test_the_profiles_that_the_default_space_names_first_are_points_of_it(name):
    """Else looks at them would teach the search nothing, and it would try the same once more under another name."""
    shipped = load(name)
    choice = nearest(DEFAULT, shipped)
    made = None if choice is None else profile(DEFAULT, choice, name)
    assert made is not None
    assert identity(resolve(made)) == identity(resolve(shipped))


@pytest.mark.parametrize(("runtime", "tried"), [("gnu", True), ("intel", False), ("llvm", False)])
def test_threads_of_other_runtimes_are_not_bound_as_libgomp_s_are(runtime, tried):
    """PyTorch's libgomp is there as well, and would bind the first thread before they count its CPUs."""
    unset = {knob.name: next(iter(knob.labels)) for knob in DEFAULT.knobs if not knob.when}
    assert allowed(DEFAULT, unset | {"runtime": runtime})
    for binding in ("close", "spread"):
        assert allowed(DEFAULT, unset | {"runtime": runtime, "binding": binding}) == tried
