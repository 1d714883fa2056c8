from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from envkit.profiles import catalogue, profile
from envkit.profiles.expressions import FACTS
from envkit.profiles.limit_messages import SecondOfAKind
from envkit.profiles.messages import ExtendsCircle, NoProfileFile, NotTuned, UnknownProfile
from envkit.profiles.needs import TEXT_FACTS
from envkit.profiles.places import PROFILE_FOLDER
from envkit.rendering import text

from tests.refusals import assert_refused, refusal

SHIPPED = profile.names()


@pytest.fixture
def load(write_profile):
    """Load a profile of the YAML lines given, which begin in line 6."""
    return lambda text, name="mine": profile.load(str(write_profile(name, text)))


def test_shipped_profiles_say_what_they_are_good_for_and_prove_what_they_set():
    for name in SHIPPED:
        loaded = profile.load(name)
        assert loaded.name == name
        for said in (loaded.reason, loaded.helps, loaded.hurts):
            assert said, name
            assert said.endswith("."), name
        assert loaded.source.startswith("https://"), name
        assert name == "baseline" or loaded.expect, name
        # what it sets has a place in the evidence
        assert [variable for variable in loaded.env if catalogue.load()[variable].verified_by is None] == [], name


def test_each_kind_of_profile_is_shipped():
    wanted = (
        "baseline intel-omp intel-omp-throughput gnu-omp llvm-omp jemalloc-launcher jemalloc-retain tcmalloc mimalloc "
        "glibc-retain onednn-bf16 one-socket interleave physical-cores smt low-noise ddp-cpu"
    )
    assert set(wanted.split()) <= set(SHIPPED)


def test_the_launchers_settings_are_those_of_the_installed_launcher():
    """jemalloc-launcher says that it sets what PyTorch's own launcher does: read it there."""
    launcher = Path(find_spec("torch").origin).parent / "backends/xeon/run_cpu.py"
    assert f'"{profile.load("jemalloc-launcher").env["MALLOC_CONF"]}"' in launcher.read_text()


def test_the_reference_sets_nothing():
    loaded = profile.load("baseline")
    assert (loaded.env, loaded.preload, loaded.prefix) == ({}, (), ())


def test_all_keys(load, tmp_path):
    loaded = load(
        "preload: [jemalloc, intel-openmp]\n"
        "env:\n  A: 0x10\n  B: 1e3\n  C: ${usable_cpus - 1}\n  D: 'yes'\n"
        "prefix: [numactl, --physcpubind, 0]\n"
        "expect:\n  openmp.max_threads: 2\n  malloc.settings.background_thread: true\n"
        "needs:\n  numa_nodes: 2\n  usable_cpus: ${physical_cores + 1}\nnumerics: may-differ\n"
    )
    assert loaded.needs == {"numa_nodes": 2, "usable_cpus": "${physical_cores + 1}"}
    assert (loaded.helps, loaded.hurts) == (None, None)
    assert loaded.preload == ("jemalloc", "intel-openmp")
    assert loaded.env == {"A": "0x10", "B": "1e3", "C": "${usable_cpus - 1}", "D": "yes"}
    assert loaded.prefix == ("numactl", "--physcpubind", "0")
    assert loaded.expect == {"openmp.max_threads": 2, "malloc.settings.background_thread": True}
    assert loaded.numerics == "may-differ"
    assert loaded.path == tmp_path / "mine.yaml"


def test_extending_merges_key_by_key_and_null_takes_away(write_profile, load):
    write_profile(
        "parent",
        "preload: [jemalloc]\nenv: {A: 1, B: 2}\nprefix: [nice]\nexpect: {malloc.allocator: jemalloc}\n"
        "needs: {numa_nodes: 2, usable_cpus: 4}\nnumerics: may-differ\n",
    )
    loaded = load("extends: parent\nneeds: {usable_cpus: ~}\nenv: {A: 5, B: ~, C: 3}\nexpect: {openmp.runtime: gnu}\n")
    assert loaded.needs == {"numa_nodes": 2}
    assert loaded.env == {"A": "5", "C": "3"}
    assert loaded.preload == ("jemalloc",)
    assert loaded.prefix == ("nice",)
    assert loaded.expect == {"malloc.allocator": "jemalloc", "openmp.runtime": "gnu"}
    assert loaded.numerics == "may-differ"


@pytest.mark.parametrize(
    "kind",
    ["AuthenticAMD", ["AuthenticAMD", "HygonGenuine"], {"not": "GenuineIntel"},
     {"not": ["GenuineIntel", "CentaurHauls"], "because": "of a reason"}],
)  # fmt: skip
def test_a_kind_of_processor_is_inherited_and_can_be_taken_away(write_profile, load, kind):
    write_profile("parent", f"needs: {json.dumps({'cpu_vendor': kind, 'gpus': 1})}\n")
    assert load("extends: parent\n").needs == {"cpu_vendor": kind, "gpus": 1}
    assert load("extends: parent\nneeds: {cpu_vendor: ~}\n").needs == {"gpus": 1}


@pytest.mark.parametrize(
    ("given", "key", "fix"),
    [
        ("Intel", "'needs.cpu_vendor' can't be 'Intel'", "GenuineIntel, AuthenticAMD, "),
        ("AuthenticAMDs", "'needs.cpu_vendor' can't be", "(did you mean 'AuthenticAMD'?)"),
        ("[AuthenticAMD, intel]", "'needs.cpu_vendor.1' can't be 'intel'", "GenuineIntel, "),
        ("[]", "'needs.cpu_vendor' is empty", "as AuthenticAMD"),
        ("2", "'needs.cpu_vendor' must be a text, a list or a mapping, not 2", "as {not: GenuineIntel}"),
        ("{because: of it}", "'needs.cpu_vendor.not' is missing", "add a maker, as {not: GenuineIntel}"),
        ("{not: AMD}", "'needs.cpu_vendor.not' can't be 'AMD'", "GenuineIntel, "),
        ("{not: 2}", "'needs.cpu_vendor.not' must be a text or a list", "as AuthenticAMD"),
        ("{nut: GenuineIntel}", "unknown key 'needs.cpu_vendor.nut' (did you mean 'not'?)", "not, because"),
        ('{not: GenuineIntel, because: "a\\nb"}', "'needs.cpu_vendor.because' can't be", "write it on one line"),
    ],
)
def test_what_is_no_kind_of_processor(write_profile, given, key, fix):
    path = write_profile("mine", f"needs:\n  cpu_vendor: {given}\n")
    assert_refused(lambda file: profile.load(str(file)), path, 7, key, fix)


def test_extending_replaces_lists_whole(write_profile, load):
    write_profile("parent", "preload: [jemalloc]\nprefix: [nice]\n")
    loaded = load("extends: parent\npreload: [intel-openmp]\nprefix: []\n")
    assert (loaded.preload, loaded.prefix) == (("intel-openmp",), ())


def test_what_is_extended_is_sought_beside_the_file_then_among_the_shipped(write_profile, load):
    assert load("extends: jemalloc\n").preload == ("jemalloc",)
    write_profile("jemalloc", "preload: [mimalloc]\n")
    assert load("extends: jemalloc\n").preload == ("mimalloc",)


def test_names_are_sorted_and_only_yaml(write_profile, tmp_path):
    for name in ("zeta", "alpha"):
        write_profile(name)
    (tmp_path / "notes.txt").write_text("x")
    assert profile.names(tmp_path) == ["alpha", "zeta"]


@pytest.fixture
def local_folder(tmp_path, write_profile):
    """A folder of profiles in which this machine has a tuned one, and what that sets."""
    (tmp_path / "local").mkdir()
    write_profile("shared", "env: {A: 1}\n")
    write_profile(profile.tuned_name(), "extends: shared\nenv: {B: 2}\n", tmp_path / "local")
    return tmp_path


@pytest.mark.parametrize("name", ["tuned", profile.tuned_name()])
def test_tuned_stands_for_this_machines_own_profile(local_folder, name):
    loaded = profile.load(name, local_folder)
    assert (loaded.name, loaded.env) == (profile.tuned_name(), {"A": "1", "B": "2"})
    assert profile.names(local_folder) == ["shared"]


def test_without_a_tuned_profile_it_says_how_to_make_one(tmp_path):
    found = refusal(profile.load, "tuned", tmp_path)
    assert found == NotTuned(str(tmp_path / "local" / f"{profile.tuned_name()}.yaml"))


def test_unknown_profile_suggests_the_nearest_and_says_what_lists_all():
    found = refusal(profile.load, "inetl-omp")
    assert isinstance(found, UnknownProfile)
    assert (found.name, found.folders, found.suggestions[0]) == ("inetl-omp", (str(PROFILE_FOLDER),), "intel-omp")
    assert len(found.suggestions) <= 3
    assert text(found).endswith("; envkit profiles lists all")
    assert refusal(profile.load, "zzz") == UnknownProfile("zzz", (str(PROFILE_FOLDER),))


def test_unknown_profile_file(tmp_path):
    assert refusal(profile.load, f"{tmp_path}/none.yaml") == NoProfileFile(f"{tmp_path}/none.yaml")


# What a profile has beside what each must have, the line (from 6 on) that a refusal names, the key, and the fix.
BAD = [
    # keys
    ("evn:\n  A: 1\n", 6, "'evn'", "did you mean 'env'?); the keys are: name, title, why, extends, "),
    ("zzz: 1\n", 6, "'zzz'", "name, "),
    ("env: {A: 1}\nenv: {B: 2}\n", 7, "'env'", "remove one"),
    ("env:\n  A: 1\n  A: 2\n", 8, "'A'", "remove one"),
    # variables
    ("env: [A, B]\n", 6, "'env'", "as {OMP_NUM_THREADS: 4}"),
    ("env:\n", 6, "'env'", "as {OMP_NUM_THREADS: 4}"),
    ("env:\n  A: {x: 1}\n", 7, "'env.A'", "give a text or a number"),
    ("env:\n  1A: x\n", 7, "'env.1A'", "letters, digits and _"),
    ("env:\n  A B: x\n", 7, "'env.A B'", "letters, digits and _"),
    ('env:\n  "A\\n": x\n', 7, "'env.A'", "letters, digits and _"),
    ("env:\n  LD_PRELOAD: x.so\n", 7, "'env.LD_PRELOAD'", "name the library under 'preload'"),
    ("env:\n  LD_PRELOAD:\n", 7, "'env.LD_PRELOAD'", "name the library under 'preload'"),
    ("env:\n  A: 1\n  B: on\n", 8, "'env.B' can't be on", "in quotes where YAML takes it for true or false"),
    ("env:\n  A: ${cores}\n", 7, "'cores'", "the facts are: gpus, numa_nodes, physical_cores, "),
    ('env:\n  A: "x\\0y"\n', 7, "'env.A'", "remove it"),
    # libraries and prefix
    ("preload: jemalloc\n", 6, "'preload'", "[jemalloc]"),
    ("preload:\n", 6, "'preload'", "[jemalloc]"),
    ("preload: [jemaloc]\n", 6, "'preload.0'", "did you mean 'jemalloc'?); the choices are: intel-openmp, "),
    ("preload:\n  - jemalloc\n  - [x]\n", 8, "'preload.1'", "intel-openmp, "),
    ("preload: [5]\n", 6, "'preload.0' can't be 5", "intel-openmp, "),
    ("prefix: numactl\n", 6, "'prefix'", "[numactl, --interleave=all]"),
    ("prefix: [nice, [x]]\n", 6, "'prefix.1'", "give one word, in quotes"),
    ("prefix: [nice, 1.0]\n", 6, "'prefix.1'", "give one word, in quotes"),
    ("prefix: [nice, yes]\n", 6, "'prefix.1'", "give one word, in quotes"),
    ("prefix: [numactl, '${nodes}']\n", 6, "'nodes'", "the facts are: gpus, "),
    # expectations
    ("expect: gnu\n", 6, "'expect'", "as {malloc.allocator: jemalloc}"),
    ("expect:\n  openmp.runtim: gnu\n", 7, "'expect.openmp.runtim'", "(did you mean 'openmp.runtime'?)"),
    ("expect:\n  open.settings.x: 1\n", 7, "'expect.open.settings.x'", ", openmp.settings.NAME, "),
    ("expect:\n  openmp.max_threads: 2.0\n", 7, "'expect.openmp.max_threads'", "a text, a whole number or true/false"),
    ("expect:\n  openmp.max_threads: [1]\n", 7, "'expect.openmp.max_threads'", "a text, a whole number or true/false"),
    ("expect:\n  openmp.max_threads: ${cores}\n", 7, "'cores'", "the facts are: gpus, "),
    # needs
    ("needs: [numa_nodes]\n", 6, "'needs'", "as {numa_nodes: 2}"),
    ("needs:\n  numa_node: 2\n", 7, "'needs.numa_node'", "(did you mean 'numa_nodes'?)"),
    ("needs:\n  numa_nodes: two\n", 7, "'needs.numa_nodes'", "give a whole number, or one expression"),
    ("needs:\n  numa_nodes: 2.0\n", 7, "'needs.numa_nodes'", "give a whole number, or one expression"),
    ("needs:\n  numa_nodes: yes\n", 7, "'needs.numa_nodes'", "give a whole number, or one expression"),
    ("needs:\n  usable_cpus: '${cores + 1}'\n", 7, "'cores'", "the facts are: gpus, "),
    ("needs:\n  gpus: '${gpus} + 1'\n", 7, "'needs.gpus'", "one expression such as ${physical_cores + 1}"),
    # the rest
    ("ranks: 0\n", 6, "'ranks' must be 1 or more", "how many processes train together"),
    ("ranks: 2.0\n", 6, "'ranks' must be a whole number", "how many processes train together"),
    ("ranks: yes\n", 6, "'ranks' must be a whole number", "how many processes train together"),
    ("numerics: maybe\n", 6, "'numerics' can't be 'maybe'", "same, may-differ"),
    ("extends: [a]\n", 6, "'extends'", "give a text"),
    ("extends:\n", 6, "'extends'", "give a text"),
    ("extends: intel-opm\n", 6, "'intel-opm'", "(did you mean 'intel-omp'?)"),
    ("extends: mine\n", 6, "'extends'", "a circle (mine -> mine); remove one link"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "fix"), BAD)
def test_refused_with_file_line_key_and_fix(write_profile, text, line, key, fix):
    assert_refused(lambda file: profile.load(str(file)), write_profile("mine", text), line, key, fix)


@pytest.mark.parametrize(
    ("text", "line", "key", "fix"),
    [
        ("title: x\nwhy: {reason: r, source: s}\n", 1, "'name' is missing", "add it"),
        ("name: mine\nwhy: {reason: r, source: s}\n", 1, "'title' is missing", "add it"),
        ("name: mine\ntitle: x\n", 1, "'why' is missing", "give it 'reason' (a sentence) and"),
        ("name: mine\ntilte: x\n", 2, "'tilte'", "(did you mean 'title'?)"),
        ("title: x\nname: other\nwhy: {reason: r, source: s}\n", 2, "name 'other'", "the name of the file, 'mine'"),
        ("name: mine\ntitle: 5\nwhy: {reason: r, source: s}\n", 2, "'title' must be a text, not 5", "in quotes"),
        ("name: mine\ntitle: x\nwhy: because\n", 3, "'why' must be a mapping", "give it 'reason' (a sentence) and"),
        ("name: mine\ntitle: x\nwhy:\n  source: s\n", 3, "'why.reason' is missing", "add it"),
        ("name: mine\ntitle: x\nwhy:\n  reason: 1\n  source: s\n", 4, "'why.reason' must be a text", "in quotes"),
        ("name: mine\ntitle: x\nwhy:\n  reason: r\n  sauce: s\n", 5, "'why.sauce'", "(did you mean 'source'?)"),
        ("name: mine\ntitle: x\nwhy:\n  reason: r\n  source: s\n  helps: [a]\n", 6, "'why.helps'", "in quotes"),
        # what is printed
        ('name: mine\ntitle: "a\\nb"\nwhy: {reason: r}\n', 2, "'title' can't be 'a b'", "write it on one line"),
        ('name: mine\ntitle: "\\e[31mx"\nwhy: {reason: r}\n', 2, "'title' can't be", "take out control characters"),
        ('name: "mi\\x9bne"\ntitle: x\nwhy: {reason: r}\n', 1, "'name' can't be", "take out control characters"),
        ('name: mine\ntitle: x\nwhy: {reason: "a\\rb"}\n', 3, "'why.reason' can't be", "take out control characters"),
        ('name: mine\ntitle: x\nwhy: {reason: r, hurts: "\\u202e"}\n', 3, "'why.hurts' can't be", "take out control"),
    ],
)  # fmt: skip
def test_what_every_profile_must_have(tmp_path, text, line, key, fix):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert_refused(lambda file: profile.load(str(file)), path, line, key, fix)


def test_a_profile_of_one_s_own_needs_no_source_and_may_have_a_long_reason(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ntitle: Größer?\nwhy:\n  reason: |\n    One line.\n    Another.\n")
    loaded = profile.load(str(path))
    assert (loaded.source, loaded.reason) == (None, "One line.\nAnother.\n")


def test_the_schema_has_the_facts_that_the_code_has():
    known = json.loads(profile.SCHEMA.read_text())["$defs"]
    assert tuple(known["needs"]["properties"]) == (*FACTS, *TEXT_FACTS)


@pytest.mark.parametrize("second", ["tcmalloc", "jemalloc, tcmalloc"])
def test_two_libraries_of_which_one_would_run_are_refused(load, second):
    found = refusal(load, f"preload: [mkl-dispatch, jemalloc, {second}]\n")
    assert (found.line, found.problem) == (6, SecondOfAKind("tcmalloc", "jemalloc"))


def test_a_longer_circle_is_shown_whole(write_profile, load):
    write_profile("a", "extends: b\n")
    write_profile("b", "extends: c\n")
    found = refusal(load, "extends: a\n", "c")
    assert (Path(found.file).name, found.line, found.problem) == ("b.yaml", 6, ExtendsCircle("c -> a -> b -> c"))


def test_an_error_in_what_is_extended_names_that_file(write_profile, load):
    write_profile("parent", "evn: {}\n")
    found = refusal(load, "extends: parent\n")
    assert (Path(found.file).name, found.line, found.problem.key) == ("parent.yaml", 6, "evn")


def test_division_by_a_fact_is_left_to_the_machine(load):
    assert load("env: {A: '${8 // (numa_nodes - 1)}'}\n").env


def test_the_documentation_s_example_is_a_profile(tmp_path):
    page = (PROFILE_FOLDER.parent / "docs/profiles.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "mine.yaml").write_text(example)
    loaded = profile.load(str(tmp_path / "mine.yaml"))
    assert loaded.env.keys() == {"OMP_NUM_THREADS", "KMP_AFFINITY"}
    assert loaded.expect.keys() == {"openmp.runtime", "openmp.max_threads"}
    assert loaded.prefix == ("numactl", "--interleave=all")


def test_in_a_job_the_profile_of_its_partition_is_tuned_unless_the_node_has_its_own(
    tmp_path, write_profile, monkeypatch
):
    local = tmp_path / "local"
    local.mkdir()
    write_profile("fast-tuned", "env: {A: 1}\n", local)
    monkeypatch.delenv("SLURM_JOB_PARTITION", raising=False)
    assert isinstance(refusal(profile.load, "tuned", tmp_path), NotTuned)
    monkeypatch.setenv("SLURM_JOB_PARTITION", "fast")
    assert profile.load("tuned", tmp_path).name == "fast-tuned"
    write_profile(profile.tuned_name(), "env: {A: 2}\n", local)
    assert profile.load("tuned", tmp_path).name == profile.tuned_name()
