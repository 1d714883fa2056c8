from __future__ import annotations

import json
import platform
import shlex

import pytest
from envkit.profiles.formats import FORMATS

from tests.cli.commands.conftest import FACTS
from tests.nvidia import accelerator

INSIDE = ["docker", "dockerfile", "apptainer", "pyxis", "kubernetes"]


@pytest.fixture
def env(cli, simulation):
    """Print a profile as it would be set on the simulated machine (4 CPUs, 2 cores)."""
    return lambda profile, *options: cli("env", profile, "--python", simulation.python, *options)


@pytest.fixture
def env_refused(refused, simulation):
    return lambda profile, *options: refused("env", profile, "--python", simulation.python, *options)


@pytest.fixture
def pinned(write_profile):
    return write_profile("pinned", "env:\n  A: 1\nprefix: [env, -u, X]\nnumerics: may-differ\n")


def test_for_a_shell_by_default(env, simulation, write_profile):
    profile = write_profile("mine", "env:\n  OMP_NUM_THREADS: ${physical_cores}\n  TEXT: a 'b' $c\n")
    result = env(profile).ended(0, stderr="")
    machine = f"4 usable CPUs on 2 cores of {platform.node()} (Simulated CPU)"
    assert result.stdout.splitlines() == [
        f"# profile mine, resolved for {machine}; local {simulation.python}",
        "export OMP_NUM_THREADS=2",
        f"export TEXT={shlex.quote(chr(97) + ' ' + chr(39) + 'b' + chr(39) + ' $c')}",
    ]
    assert env(profile, "--format", "shell").stdout == result.stdout


def test_libraries_are_preloaded_for_what_runs_on_this_machine(env):
    for name in ("shell", "sbatch"):
        assert "\nexport LD_PRELOAD=/usr/lib/libjemalloc.so.2\n" in env("jemalloc", "--format", name).stdout
    assert env("jemalloc", "--format", "dotenv").stdout.endswith("\nLD_PRELOAD=/usr/lib/libjemalloc.so.2\n")
    settings = json.loads(env("jemalloc", "--format", "vscode").stdout)
    assert settings["terminal.integrated.env.linux"] == {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}


@pytest.mark.parametrize("name", INSIDE)
def test_a_path_of_this_machine_is_not_given_to_a_container(env_refused, name):
    assert env_refused("jemalloc", "--format", name) == (
        f"envkit: profile 'jemalloc' needs jemalloc, and --format {name} needs the paths inside an image: "
        "add --engine docker with --image, apptainer with --sif, or enroot with --sqsh"
    )


def test_a_command_of_this_machine_is_not_given_to_a_container(env_refused, pinned):
    assert "profile 'pinned' needs env, and" in env_refused(pinned, "--format", "docker")


@pytest.mark.parametrize("name", FORMATS)
def test_what_needs_nothing_of_an_image_is_for_every_format(env, name):
    env("baseline", "--format", name).ended(0, stderr="")


@pytest.mark.parametrize("name", ["shell", "dotenv", "vscode"])
def test_what_variables_cannot_do_is_said_where_it_is_seen(env, pinned, name):
    """The output of ``eval "$(envkit env PROFILE)"`` is never seen, nor are comments in it."""
    assert env(pinned, "--format", name).stderr.splitlines() == [
        "envkit: note: start your commands with: env -u X",
        "envkit: note: numerics may differ from those without this profile",
    ]


def test_a_format_that_starts_commands_does_so_with_the_prefix(env, pinned):
    result = env(pinned, "--format", "sbatch")
    assert result.stderr.splitlines() == ["envkit: note: numerics may differ from those without this profile"]
    assert result.stdout.endswith('\nexec env -u X "$@"\n')


@pytest.mark.parametrize(("engine", "asking"), [("docker", "--gpus all"), ("podman", "--device nvidia.com/gpu=all")])
def test_a_profile_for_gpus_asks_for_them(cli, images_of, engine, asking):
    """In the engine's own words, or a note says how."""
    images_of(engine).add("envkit-cuda").inspection(facts={**FACTS, "gpus": 1}, accelerator=accelerator(1))
    named = ("gpu-one-queue", "--engine", engine, "--image", "envkit-cuda", "--format")
    result = cli("env", *named, "docker")
    assert (result.stdout, result.stderr) == (f"{asking} --env CUDA_DEVICE_MAX_CONNECTIONS=1\n", "")
    for other, started in (("dockerfile", "docker run --gpus all"), ("apptainer", "apptainer run --nv")):
        said = cli("env", *named, other).stderr
        assert said == f"envkit: note: start the container with the machine's GPUs: {started}\n"
    asked = cli("env", *named, "pyxis")
    assert "\nexport NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=" in asked.stdout
    assert (" --container-image=envkit-cuda " in asked.stdout, asked.stderr) == (True, "")


def test_where_a_file_for_containers_too_has_this_machine_s_paths(env):
    note = "envkit: note: the preloaded libraries' paths are this machine's; for a container add --engine docker "
    assert env("jemalloc", "--format", "dotenv").stderr == f"{note}--image NAME\n"
    assert env("jemalloc", "--format", "vscode").stderr == ""


@pytest.mark.parametrize(
    ("profile", "seen", "cpus"),
    [
        # 4 CPUs on 2 cores: what the profile's threads are is all that runs
        ("physical-cores", {}, 2),
        # the job's other CPUs are for other processes, or on the other NUMA node
        ("ddp-cpu", {"numa_nodes": 2}, 4),
        ("one-socket", {"numa_nodes": 2}, 4),
        # for DataLoader's workers, beside each of the machine's GPUs
        ("gpu-host", {"gpus": 1}, 4),
        ("gpu-host", {"gpus": 2}, 2),
    ],
)
def test_a_job_asks_for_the_cpus_beside_the_threads_too(cli, images_of, profile, seen, cpus):
    facts, found = {**FACTS, **seen}, accelerator(seen.get("gpus", 0))
    images_of().add("some").inspection(facts=facts, accelerator=found, commands={"numactl": "/usr/bin/numactl"})
    script = cli("env", profile, "--engine", "docker", "--image", "some", "--format", "sbatch").stdout
    assert f"#SBATCH --cpus-per-task={cpus}\n" in script


def test_a_kernel_starts_the_interpreter_that_is_measured(env, simulation):
    kernel = json.loads(env("baseline", "--format", "jupyter").stdout)
    assert kernel["argv"][0] == str(simulation.python)


def test_in_an_image_the_interpreter_is_its_own(cli, images_of):
    images_of().add("mine").inspection(package_folders=["/nowhere"])
    result = cli("env", "baseline", "--engine", "docker", "--image", "mine", "--format", "jupyter")
    assert (json.loads(result.stdout)["argv"][0], result.stderr) == ("python", "")


def test_a_value_that_a_format_cannot_express(env_refused, write_profile):
    path = write_profile("mine", 'env:\n  LINES: "a\\nb"\n')
    said = "envkit: profile 'mine': --format dotenv can't express LINES: it has a line break"
    assert env_refused(path, "--format", "dotenv").startswith(said)


def test_a_value_that_the_locale_cannot_write(cli_process, simulation, write_profile):
    path = write_profile("mine", 'env:\n  TEXT: "gr\\xfcn"\n')
    result = cli_process("env", path, "--python", simulation.python, PYTHONIOENCODING="ascii")
    problem = "'\\xfc' can't be written in ascii; take it out, or use a UTF-8 locale"
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"envkit: profile 'mine': {problem}\n"


def test_a_value_that_no_process_can_have(env_refused, write_profile):
    path = write_profile("mine", 'env:\n  HALF: "\\ud800"\n')
    problem = "'env.HALF' has half of a character (\\ud800), which no process can receive; remove it"
    assert env_refused(path) == f"envkit: {path}:7: {problem}"


def test_what_nothing_reads_is_not_printed(env, env_refused, write_profile):
    path = write_profile("mine", "env:\n  OMP_NUM_THREDS: 2\n")
    wrong = "OMP_NUM_THREDS: no library is known to read it (did you mean 'OMP_NUM_THREADS'?)"
    fix = "correct the name, or give --allow-unknown"
    assert env_refused(path) == f"envkit: profile 'mine' sets {wrong}; {fix}"
    assert env(path, "--allow-unknown").stdout.endswith("\nexport OMP_NUM_THREDS=2\n")


def test_what_contradicts_the_profile_is_unset_in_a_shell(cli, simulation, write_profile):
    """But for what only says where to run, and what the profile sets anyway."""
    profile = write_profile("mine", "env:\n  OMP_NUM_THREADS: 2\n")
    stray = {"KMP_AFFINITY": "none", "LD_PRELOAD": ""}
    given = {**stray, "OMP_NUM_THREADS": "7", "CUDA_VISIBLE_DEVICES": "1", "OMP_no-name": "1"}
    result = cli("env", profile, "--python", simulation.python, **given)
    comment, unset, export = result.stdout.splitlines()
    assert comment.startswith("# profile mine")
    assert (unset, export) == ("unset KMP_AFFINITY LD_PRELOAD", "export OMP_NUM_THREADS=2")
    note = "unset, because it could change the outcome: KMP_AFFINITY, LD_PRELOAD; set again what you need"
    assert result.stderr == f"envkit: note: {note}\n"
    for other in FORMATS.keys() - {"shell", "sbatch", "pyxis"}:
        assert "unset" not in cli("env", profile, "--python", simulation.python, "--format", other, **given).stdout


def test_a_preload_of_the_shell_s_own_that_is_replaced_is_named(cli, simulation):
    own = "/usr/lib/libjemalloc.so.2"
    said = {
        theirs: cli("env", "jemalloc", "--python", simulation.python, LD_PRELOAD=theirs).stderr
        for theirs in (own, f"{own}:/site/tracer.so", "")
    }
    assert said.pop(f"{own}:/site/tracer.so") == (
        f"envkit: note: LD_PRELOAD={own}:/site/tracer.so is replaced by the profile's own; add again what you need of "
        "it\n"
    )
    assert [*said.values()] == ["", ""]


@pytest.mark.parametrize("name", FORMATS)
def test_a_memory_limit_is_an_option_of_docker_s_and_is_in_no_other_text(cli, images_of, name):
    images_of().add("mine").inspection(memory_limit=4 * 2**30)
    options = ("--engine", "docker", "--image", "mine", "--memory", "4g", "--format", name)
    result = cli("env", "baseline", *options).ended(0)
    note = "envkit: note: --memory 4g can't be written in this format; give the limit where you start the command\n"
    assert (note in result.stderr) == (name != "docker")
    assert ("--memory 4g --memory-swap 4g" in result.stdout) == (name == "docker")


def test_an_unknown_format(env):
    result = env("baseline", "--format", "fish").ended(2, stdout="")
    assert "no such value 'fish'" in result.stderr
    for name in FORMATS:
        assert name in result.stderr
