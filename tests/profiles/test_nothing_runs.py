"""No profile, and no space of settings, chooses what is run: only known launchers, and no variable that runs code."""

from __future__ import annotations

import json

import pytest
from envkit.profiles import code_variables, launchers, profile
from envkit.profiles.limit_messages import LacksValue, NotALauncher, NotOfLauncher, PluginByPath, RunsCode
from envkit.profiles.messages import ExtendsUnknown
from envkit.tuning import space_file

from tests.refusals import refusal

RUN_CODE = [
    "PATH", "HOME", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS",
    "PERL5OPT", "LD_AUDIT", "LD_LIBRARY_PATH", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "CXX", "OMP_TOOL_LIBRARIES",
    "INTEL_JIT_PROFILER64", "INTEL_LIBITTNOTIFY64", "LLVM_PASS_PLUGIN_PATH", "TRITON_CACHE_MANAGER", "CXXFLAGS",
    "COVERAGE_PROCESS_START", "SLURM_TASK_PROLOG", "APPTAINER_BIND", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD",
    "CUDA_INJECTION64_PATH", "NODE_OPTIONS", "GCONV_PATH", "NCCL_CONF_FILE", "TORCHINDUCTOR_CACHE_DIR",
]  # fmt: skip
ORDINARY = [
    "OMP_NUM_THREADS", "LD_BIND_NOW", "PYTHONMALLOC", "PYTHONHASHSEED", "TMPDIR", "MALLOC_CONF", "NCCL_ALGO", "HF_HOME",
    "GLIBC_TUNABLES", "CUDA_VISIBLE_DEVICES", "PYTHONOPTIMIZE", "ENVIRONMENT", "MY_PATH",
]  # fmt: skip


@pytest.mark.parametrize("name", RUN_CODE)
def test_a_variable_that_runs_code_is_refused_with_file_and_line(write_profile, name):
    path = write_profile("mine", f"env:\n  OMP_NUM_THREADS: 1\n  {name}: /tmp/x\n")
    found = refusal(profile.load, str(path))
    lines = path.read_text().splitlines()
    assert (found.file, lines[found.line - 1].strip()) == (str(path), f"{name}: /tmp/x")
    assert isinstance(found.problem, RunsCode)
    assert found.problem.variable == name


def test_what_workers_do_not_inherit_is_kept_by_an_option():
    assert code_variables.problem("LD_AUDIT", "x.so") == RunsCode("LD_AUDIT", "--keep-env LD_AUDIT")
    assert code_variables.problem("BASH_ENV", "x") == RunsCode("BASH_ENV")


def test_a_profile_can_take_such_a_variable_away_from_nothing(write_profile):
    assert profile.load(str(write_profile("mine", "env: {BASH_ENV: null}\n"))).env == {}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_variable_is_taken(write_profile, name):
    assert profile.load(str(write_profile("mine", f"env: {{{name}: x}}\n"))).env == {name: "x"}


def test_plugins_have_names_and_no_paths(write_profile):
    assert profile.load(str(write_profile("mine", "env: {NCCL_NET_PLUGIN: ofi}\n"))).env
    found = refusal(profile.load, str(write_profile("mine", "env: {NCCL_NET_PLUGIN: /tmp/x.so}\n")))
    assert found.problem == PluginByPath("NCCL_NET_PLUGIN")


@pytest.mark.parametrize(
    ("words", "at"),
    [
        (["/tmp/numactl"], 0),
        (["./numactl", "-l"], 0),
        (["bash"], 0),
        (["sh", "-c", "true"], 0),
        (["numactl", "-l", "/tmp/evil"], 2),
        (["numactl", "--membind", "0", "evil"], 3),
        (["numactl", "--file=/etc/x", "-l"], 1),
        (["numactl", "--membin=0"], 1),
        (["taskset", "-c", "0", "evil"], 3),
        (["taskset", "-p", "1"], 1),
        (["taskset", "evil", "0"], 1),
        (["nice", "evil"], 1),
        (["nice", "-n", "5", "nohup"], 3),
        (["chrt", "--batch", "0", "/tmp/evil"], 3),
        (["setarch", "evil"], 1),
        (["prlimit", "--nofile", "evil"], 1),
        (["env", "evil"], 1),
        (["env", "-S", "sh -c true"], 1),
        (["env", "-C", "/tmp"], 1),
        (["nice", "numactl", "-l", "evil"], 3),
    ],
)
def test_a_prefix_starts_no_program_of_the_files_choice(write_profile, words, at):
    path = write_profile("mine", f"prefix: {json.dumps(words)}\n")
    found = refusal(profile.load, str(path))
    assert found.file == str(path)
    assert launchers.problem(words) == (at, found.problem)
    assert isinstance(found.problem, NotALauncher if at == 0 else NotOfLauncher)


@pytest.mark.parametrize("words", [["taskset"], ["taskset", "-c"], ["numactl", "-m"], ["chrt", "-b"], ["env", "-u"]])
def test_a_launcher_does_not_take_the_training_for_a_value(words):
    assert isinstance(launchers.problem(words)[1], LacksValue)


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "LD_AUDIT", "PYTHONPATH"])
def test_env_sets_no_variable_that_runs_code(name):
    assert isinstance(launchers.problem(["env", "A=1", f"{name}=/tmp/x"])[1], RunsCode)


@pytest.mark.parametrize(
    "line",
    [
        "numactl --interleave=all", "numactl --cpunodebind=0 --membind=0", "numactl -N 0 -m 0", "numactl -N0 -l",
        "numactl --physcpubind 0-3", "taskset -c 0-3,7", "taskset 0xff", "nice -n -10", "nice -5", "nice",
        "ionice -c 2 -n0", "chrt --batch 0", "chrt --fifo 1", "setarch -R", "setarch x86_64 -R", "env A=1 B= -u X",
        "prlimit --memlock=unlimited", "nice -n 5 numactl --localalloc", "taskset 1 nice -1 env A=nice",
    ],
)  # fmt: skip
def test_launchers_are_taken_with_what_they_take(write_profile, line):
    path = write_profile("mine", f"prefix: {json.dumps(line.split())}\n")
    assert profile.load(str(path)).prefix == tuple(line.split())


def test_facts_can_stand_in_a_prefix(write_profile):
    path = write_profile("mine", "prefix: [taskset, -c, '0-${usable_cpus - 1}', nice, '-${8 // (numa_nodes - 1)}']\n")
    assert profile.load(str(path)).prefix[2] == "0-${usable_cpus - 1}"


def test_a_profile_extends_a_name_and_no_path(write_profile, tmp_path):
    write_profile("other", "env: {A: 1}\n")
    (tmp_path / "x").mkdir()
    found = refusal(profile.load, str(write_profile("mine", "extends: ../other\n", tmp_path / "x")))
    assert isinstance(found.problem, ExtendsUnknown)


SPACE = "name: s\ntitle: Test\nparameters:\n  x:\n    {}\n"


@pytest.mark.parametrize(
    ("level", "wrong"),
    [
        ("choices: {a: , b: {prefix: [/tmp/evil]}}", NotALauncher),
        ("choices: {a: , b: {prefix: [numactl, -l, evil]}}", NotOfLauncher),
        ("choices: {a: , b: {env: {BASH_ENV: /tmp/x}}}", RunsCode),
        ("variable: NCCL_NET_PLUGIN\n    values: [unset, /tmp/x.so]", PluginByPath),
        ("variable: NCCL_CONF_FILE\n    values: [unset, /tmp/x]", RunsCode),
    ],
)
def test_a_space_starts_nothing_either(tmp_path, level, wrong):
    path = tmp_path / "s.yaml"
    path.write_text(SPACE.format(level))
    found = refusal(space_file.read, path)
    assert found.file == str(path)
    assert isinstance(found.problem, wrong)
