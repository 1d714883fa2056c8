"""What a space may say, and the one line that a wrong one gets."""

from __future__ import annotations

import pytest
from envkit.engines.base import PROJECT
from envkit.profiles.profile import load
from envkit.tuning import space_file
from envkit.tuning.narrow import identity
from envkit.tuning.space import allowed, choices, nearest, profile, shown
from envkit.tuning.space_messages import UnknownSpace

from tests.refusals import assert_refused, refusal
from tests.tuning.planted import read_space, resolve, write_space

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
    return lambda text: read_space(tmp_path, text)


@pytest.mark.parametrize("name", space_file.names())
def test_the_spaces_of_the_kit_are_right(name):
    space = space_file.read(space_file.find(name))
    assert space.name == name
    assert next(choices(space))


def test_the_shipped_profiles_to_try_first_are_named(space):
    found = space(f"first: [jemalloc-retain, glibc-retain]\nparameters:\n{SPIN}")
    assert found.first == ("jemalloc-retain", "glibc-retain")


def test_what_is_no_mapping_is_called_no_space(tmp_path):
    (tmp_path / "x.yaml").write_text("- a\n")
    assert_refused(space_file.read, tmp_path / "x.yaml", 1, "a space is a mapping")


def test_a_parameter_counts_only_with_the_levels_that_it_names(space):
    found = [shown(choice) for choice in choices(space(f"parameters:\n{ALLOCATOR}{DECAY}"))]
    assert found == ["allocator=glibc", "allocator=jemalloc", "allocator=jemalloc, decay=-1"]


def test_a_constraint_takes_combinations_away(space):
    constraint = "constraints:\n  - {never: {spin: [0], allocator: [jemalloc]}, because: a test}\n"
    found = [shown(choice) for choice in choices(space(f"parameters:\n{SPIN}{ALLOCATOR}{constraint}"))]
    assert found == ["allocator=glibc", "allocator=jemalloc", "spin=0, allocator=glibc"]


def test_what_levels_set_is_merged_into_one_profile(space):
    text = """parameters:
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


def test_levels_need_a_kind_of_processor_together_or_make_no_profile(space):
    text = """parameters:
  a: {choices: {x: {env: {OMP_DYNAMIC: true}, needs: {cpu_vendor: {not: GenuineIntel}}}}}
  b:
    choices: {amd: {needs: {cpu_vendor: AuthenticAMD, gpus: 1}}, intel: {needs: {cpu_vendor: GenuineIntel}}}
"""
    found = space(text)
    made = [profile(found, choice, "x") for choice in choices(found)]
    assert [one and one.needs for one in made] == [{"cpu_vendor": ["AuthenticAMD"], "gpus": 1}, None]


def test_levels_that_contradict_each_other_make_no_profile(space):
    found = space("parameters:\n  a: {variable: OMP_DYNAMIC, values: [true, false]}\n"
                  "  b: {variable: OMP_DYNAMIC, values: [true, false]}\n")  # fmt: skip
    made = [profile(found, choice, "x") for choice in choices(found)]
    assert [one and one.env for one in made] == [{"OMP_DYNAMIC": "true"}, None, None, {"OMP_DYNAMIC": "false"}]


def only(entry: str) -> str:
    """A space of one parameter."""
    return f"parameters:\n  a: {{{entry}}}\n"


def level(sets: str) -> str:
    """A space of one parameter with one level."""
    return only(f"choices: {{x: {{{sets}}}}}")


def never(constraint: str) -> str:
    """A space of SPIN with one constraint."""
    return f"parameters:\n{SPIN}constraints:\n- {constraint}\n"


def after_spin(entry: str) -> str:
    """A space of SPIN and one more parameter."""
    return f"parameters:\n{SPIN}  b: {{{entry}, variable: OMP_DYNAMIC, values: [true]}}\n"


# A bad space behind its name and title, the line that the refusal names, the key, and the fix.
BAD = [
    # the file
    ("parameters: {}\n", 3, "'parameters' is empty", "add one"),
    ("parameters: [a]\n", 3, "'parameters'", "add one"),
    ("first: []\n", 1, "'parameters' is missing", "add one"),
    ("parameter:\n" + SPIN, 3, "'parameter'", "(did you mean 'parameters'?); the keys are: name, title, first, "),
    ("parameters:\n" + SPIN + "knobs:\n" + SPIN, 5, "'knobs'", "name, title, first, parameters, "),
    ("first: [jemalloc-retian]\nparameters:\n" + SPIN, 3, "'jemalloc-retian'", "(did you mean 'jemalloc-retain'?)"),
    ("first: [3]\nparameters:\n" + SPIN, 3, "'3'", "remove it"),
    ("first: jemalloc\nparameters:\n" + SPIN, 3, "'first'", "list shipped profiles, such as [jemalloc-retain]"),
    # parameters
    ("parameters:\n  a:\n", 4, "'parameters.a'", "'choices', or 'variable' with 'values'"),
    (only(""), 4, "'parameters.a'", "'choices', or 'variable' with 'values'"),
    (only("choices: {x: }, variable: OMP_DYNAMIC, values: [true]"), 4, "'parameters.a'",
     "'libraries' or 'choices', or 'variable' with 'values'"),
    (only("chioces: {}"), 4, "'parameters.a.chioces'", "(did you mean 'choices'?)"),
    (only("choices: {}"), 4, "'parameters.a.choices' is empty", "give it levels and what each sets"),
    (only("choices: [x]"), 4, "'parameters.a.choices'", "give it levels and what each sets"),
    (only("choices: {x: }, values: [1]"), 4, "'parameters.a.values'", "add 'parameters.a.variable', or remove"),
    (only("choices: {x: }, key: thp"), 4, "'parameters.a.key'", "add 'parameters.a.variable', or remove"),
    (only("choices: {x: }, numerics: same"), 4, "'parameters.a.numerics'", "add 'parameters.a.variable', or remove"),
    (only("variable: OMP_DYNAMIC"), 4, "'parameters.a.variable'", "without 'parameters.a.values'"),
    (only("variable: OMP_DYNAMIC, values: []"), 4, "'parameters.a.values' is empty", "[unset, 1]"),
    (only("variable: OMP_DYNAMIC, values: true"), 4, "'parameters.a.values'", "as [unset, 1]"),
    (only("variable: OMP_DYNAMIC, values: [~]"), 4, "'parameters.a.values.0'", "give a text or a number"),
    (only("variable: OMP_DYNAMIC, values: [true, true]"), 4, "'true' appears twice", "remove one"),
    (only("variable: OMP_DYNAMIC, values: [true], numerics: no"), 4, "'parameters.a.numerics'",
     "same, may-differ"),
    # variables, their keys and values
    ("parameters:\n  a:\n    variable: OMP_DYNAMIK\n    values: [unset]\n", 5,
     "'OMP_DYNAMIK' is not in the catalogue", "(did you mean 'OMP_DYNAMIC'?); see: envkit explain"),
    (only("variable: [x], values: [x]"), 4, "'parameters.a.variable'", "give a text"),
    (only("variable: LD_PRELOAD, values: [x]"), 4, "'LD_PRELOAD'", "is made from 'preload'"),
    ("parameters:\n  a:\n    variable: OMP_DYNAMIC\n    values:\n    - unset\n    - maybe\n", 8,
     "OMP_DYNAMIC: 'maybe' is not one of its words", "write one of true, false"),
    (only("variable: OMP_DYNAMIC, key: x, values: [true]"), 4, "'x'", "leave 'key' out"),
    (only("variable: MALLOC_CONF, key: thpp, values: [always]"), 4, "no key 'thpp'",
     "(did you mean 'thp'?); see: envkit explain MALLOC_CONF"),
    (only("variable: MALLOC_CONF, key: thp, values: [sometimes]"), 4, "MALLOC_CONF's thp: 'sometimes' is not one",
     "write one of always, never, default"),
    (only("variable: OMP_NUM_THREADS, values: ['${cores}']"), 4, "'cores'", "the facts are: gpus, "),
    # what a level sets
    (only("choices: {x: 5}"), 4, "'parameters.a.choices.x'", "say what this level sets"),
    (only("choices: {x: jemalloc}"), 4, "'parameters.a.choices.x'", "as {preload: [jemalloc]}"),
    (level("envv: {}"), 4, "'parameters.a.choices.x.envv'", "(did you mean 'env'?)"),
    (level("preload: [jemaloc]"), 4, "'jemaloc'", "(did you mean 'jemalloc'?)"),
    (level("preload: jemalloc"), 4, "choices.x.preload'", "write for example [jemalloc]"),
    (level("env: [A]"), 4, "choices.x.env'", "as {OMP_NUM_THREADS: 4}"),
    (level("env: {OMP_DYNAMIC: }"), 4, "x.env.OMP_DYNAMIC'", "give a text or a number"),
    (level("env: {OMP_DYNAMIK: 1}"), 4, "'OMP_DYNAMIK'", "(did you mean 'OMP_DYNAMIC'?)"),
    (level("env: {OMP_DYNAMIC: 1.5}"), 4, "OMP_DYNAMIC: '1.5' is not one", "true, false"),
    (level("settings: {MALLOC_CONF: x}"), 4, "settings.MALLOC_CONF'", "{thp: always}"),
    (level("settings: {MALLOC_CONF: {thpp: x}}"), 4, "'thpp'", "(did you mean 'thp'?)"),
    (level("settings: {MALLOC_CONF: {thp: [x]}}"), 4, "MALLOC_CONF.thp'", "give a text or "),
    (level("settings: {MALLOC_CONF: {thp: x}}"), 4, "MALLOC_CONF's thp", "always, never"),
    (level("settings: {OMP_DYNAMIC: {x: 1}}"), 4, "OMP_DYNAMIC takes one value", "no keys"),
    (level("env: {MALLOC_CONF: 'thp:always'},\n    settings: {MALLOC_CONF: {thp: never}}"), 5,
     "'MALLOC_CONF' is under 'env' too", "write its keys here alone"),
    (level("prefix: nice"), 4, "choices.x.prefix'", "write for example [numactl, "),
    (level("prefix: [[nice]]"), 4, "choices.x.prefix.0'", "give a text or a number"),
    (level("prefix: ['${cores}']"), 4, "'cores'", "the facts are: gpus, "),
    (level("expect: {openmp.runtim: gnu}"), 4, "x.expect.openmp.runtim'", "(did you mean 'openmp.runtime'?)"),
    (level("expect: {openmp.runtime: }"), 4, "x.expect.openmp.runtime'", "give what must"),
    (level("expect: {gpu.count: '${cores}'}"), 4, "'cores'", "the facts are: gpus, "),
    (level("numerics: maybe"), 4, "choices.x.numerics'", "same, may-differ"),
    (level("needs: {sockets: 2}"), 4, "x.needs.sockets'", "physical_cores, "),
    (level("needs: {gpus: '2'}"), 4, "x.needs.gpus'", "must be a whole number"),
    (level("needs: {cpu_vendor: amd}"), 4, "x.needs.cpu_vendor'", "GenuineIntel, "),
    (level("needs: {cpu_vendor: }"), 4, "x.needs.cpu_vendor'", "give makers that will do"),
    (level("ranks: 0"), 4, "x.ranks'", "how many processes train together"),
    # when a parameter counts
    (after_spin("when: [spin]"), 5, "'parameters.b.when'", "as {parameter: [level]}"),
    (after_spin("when: {spin: 0}"), 5, "'parameters.b.when.spin'", "list levels of this parameter"),
    (after_spin("when: {spin: []}"), 5, "'parameters.b.when.spin' is empty", "list levels of this parameter"),
    (after_spin("when: {spinn: [0]}"), 5, "counts when 'spinn', which is no parameter", "(did you mean 'spin'?)"),
    (after_spin("when: {spin: [7]}"), 5, "counts when spin is '7', which it never is", "it is: unset, 0"),
    ("parameters:\n  b: {when: {spin: [0]}, variable: OMP_DYNAMIC, values: [true]}\n" + SPIN, 4,
     "a parameter counts when 'spin', which appears later", "move 'spin' before it"),
    # constraints
    ("parameters:\n" + SPIN + "constraints: {}\n", 5, "'constraints'", "list what is never tried"),
    (never("spin"), 6, "'constraints.0'", "give it 'never' and 'because'"),
    (never("{nevr: {}, because: x}"), 6, "'constraints.0.nevr'", "mean 'never'?)"),
    (never("{because: x}"), 6, "'constraints.0.never' is missing", "never: {param"),
    (never("{never: {}, because: x}"), 6, "'constraints.0.never' is empty",
     "say what is never tried, as never: {parameter: [level]}"),
    (never("{never: {spin: [0]}}"), 6, "'constraints.0.because' is missing", "as because: a reason"),
    (never("{never: {spin: [0]}, because: 3}"), 6, "'constraints.0.because'", "as because: a reason"),
    (never("{never: {spinn: [0]}, because: x}"), 6, "names 'spinn', which is no parameter", "(did you mean 'spin'?)"),
    (never("{never: {spin: [9]}, because: x}"), 6, "names spin is '9', which it never is", "it is: unset, 0"),
    (never("{never: {spin: [unset, 0]}, because: x}"), 6, "this constraint excludes every choice", "narrow it"),
    (f"parameters:\n{ALLOCATOR}{DECAY}constraints:\n- {{never: {{allocator: [glibc], decay: [-1]}}, because: x}}\n", 10,
     "this constraint never applies", "remove it"),
    (never("{never: {spin: [0]}, because: x}\n- {never: {spin: [unset]}, because: x}"), 5, "the space is empty",
     "remove what does"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "fix"), BAD)
def test_a_bad_space_gets_one_line_with_file_line_key_and_fix(tmp_path, text, line, key, fix):
    path = write_space(tmp_path, text)
    assert_refused(space_file.read, path, line, key, fix)


def test_a_space_needs_a_name_and_a_title(tmp_path):
    path = tmp_path / "x.yaml"
    for text, said in (("title: x", "'name' is missing"), ("name: x", "'title' is missing"),
                       ("name: 3\ntitle: x", "'name' must be a text"),
                       ('name: "a\\nb"\ntitle: x', "'name' can't be 'a b'; write it on one line"),
                       ('title: "\\eb"\nname: a', "'title' can't be")):  # fmt: skip
        path.write_text(f"{text}\nparameters:\n{SPIN}")
        assert_refused(space_file.read, path, 1, said)


def test_a_space_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    known = tuple(space_file.names())
    assert refusal(space_file.find, "coarze") == UnknownSpace("coarze", known, "coarse")
    file = str(tmp_path / "none.yaml")
    assert refusal(space_file.find, file) == UnknownSpace(file, known)


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
    unset = {one.name: next(iter(one.levels)) for one in DEFAULT.parameters if not one.when}
    assert allowed(DEFAULT, unset | {"runtime": runtime})
    for binding in ("close", "spread"):
        assert allowed(DEFAULT, unset | {"runtime": runtime, "binding": binding}) == tried
