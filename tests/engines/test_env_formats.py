"""Every format of ``envkit env``, executed in the thing that it is for; what is seen there is what ``show`` says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
import time
from pathlib import Path

import jsonschema
import jupyter_client
import kubernetes_validate
import pytest
import yaml
from envkit.engines.base import PROJECT
from envkit.profiles.formats import FORMATS
from jupyter_client.kernelspec import KernelSpecManager

from tests.conftest import command_line
from tests.engines import conftest as engines_conftest
from tests.engines.conftest import QUICK, run
from tests.profiles.formats.resolving import environment_of
from tests.profiles.formats.test_kubernetes import variables_of
from tests.profiles.formats.test_vscode import SETTINGS

# What every format can express, what a file of variables can't, and what instructions in a Dockerfile can't.
PLAIN = {
    "SPACES": "two  words", "EMPTY": "", "INNER": "it's \"so\"#1", "PATHS": "C:\\new\\", "UTF8": "grün", "YAML": "1e3",
    "PERCENT": "%post {{ HOME }}",
}  # fmt: skip
HOSTILE = {**PLAIN, "QUOTES": "'it' \"is\"", "DOLLARS": "$HOME $(id) `id` $$", "HASH": " # no comment"}
PARAGRAPH = {**HOSTILE, "PARAGRAPH": "one\n  %post two\n# three\n"}
WITHOUT_DOLLARS = {name: value for name, value in PARAGRAPH.items() if "$" not in value}
PREFIX = "prefix: [env, 'STARTED=with it']\n"
TESTED = {
    "shell", "dotenv", "docker", "dockerfile", "apptainer", "sbatch", "pyxis", "kubernetes", "vscode", "jupyter",
    "python",
}  # fmt: skip
BASE = "debian:bookworm-slim"
BASE_ARCHIVE = PROJECT / "build/debian-bookworm-slim.docker.tar"
# Fast, as nothing is kept.
SQUASH = QUICK["KIT_SIF_COMPRESSION"]
WAIT_S = 240


@pytest.fixture
def cli(cli_in_process):
    """None of the kit's code goes into an image here: a process of its own for each command tells nothing more."""
    return cli_in_process


@pytest.fixture
def sif_base(requires) -> tuple[str, str]:
    """Whence Apptainer takes the base image, and its name there: out of Docker where that is, or of the registry.

    Skips where Apptainer can't be used, or Docker is there and does not answer.
    """
    requires("apptainer")
    archive = BASE_ARCHIVE
    if not archive.exists():
        if shutil.which("docker") is None:
            return "docker", BASE
        requires("docker")
        archive.parent.mkdir(exist_ok=True)
        partial = archive.with_suffix(f".{os.getpid()}.partial")  # another process of the tests may make it as well
        run("docker", "save", "--output", partial, BASE)
        partial.chmod(0o644)  # Apptainer may work as another user
        partial.replace(archive)
    return "docker-archive", str(archive)


def test_every_format_is_executed_here():
    assert FORMATS.keys() == TESTED


@pytest.fixture
def hostile(write_profile):
    """A profile with those variables, jemalloc, and a number that depends on the machine."""

    def write(variables, text=""):
        env = {**variables, "OMP_NUM_THREADS": "${physical_cores}"}
        return write_profile("hostile", f"preload: [jemalloc]\nenv: {json.dumps(env)}\n{text}")

    return write


@pytest.fixture
def shown(cli):
    """The variables that ``envkit show`` says would be set."""

    def variables(profile, *options):
        result = cli("show", profile, "--json", *options)
        assert result.returncode == 0, result
        return json.loads(result.stdout)["variables"]

    return variables


@pytest.fixture
def printed(cli):
    """What ``envkit env`` prints."""

    def text(profile, name, *options):
        result = cli("env", profile, "--format", name, *options)
        assert result.returncode == 0, result
        return result.stdout

    return text


@pytest.fixture
def image(built_image):
    return built_image("docker")


@pytest.fixture
def in_docker(image):
    return ["--engine", "docker", "--image", image]


@pytest.fixture
def open_folder():
    """A folder that Apptainer may read and write, whoever it works as."""
    folder = Path(tempfile.mkdtemp(prefix="envkit-tests-", dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Starts one as Jupyter does, and returns what runs a cell there: what that prints, or its error."""
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    started = []

    def start(text):
        folder = tmp_path / "kernels/mine"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(text)
        specs = KernelSpecManager(kernel_dirs=[str(folder.parent)], ensure_native_kernel=False)
        manager = jupyter_client.KernelManager(kernel_name="mine", kernel_spec_manager=specs)
        started.append(manager)
        manager.start_kernel(cwd=str(tmp_path))
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=WAIT_S)

        def execute(code):
            printed = []

            def hear(message):
                printed.append(message["content"].get("text", "") if message["msg_type"] == "stream" else "")

            reply = client.execute_interactive(code, timeout=WAIT_S, output_hook=hear)["content"]
            return "".join(printed) if reply["status"] == "ok" else f"{reply['ename']}: {reply['evalue']}"

        return execute

    yield start
    for manager in started:
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_a_shell_evaluates_it(hostile, shown, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    profile = hostile(PARAGRAPH)
    variables = shown(profile)
    script = 'eval "$("$@")" && exec env -0'
    assert variables.items() <= environment_of(shell, "-c", script, shell, *command_line("env", profile)).items()
    mapped = run(
        shell, "-c", 'eval "$("$@")"; exec grep libjemalloc /proc/self/maps', shell, *command_line("env", profile)
    )
    assert variables["LD_PRELOAD"] in mapped.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_a_shell_evaluates_nothing_where_it_is_refused(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    result = run(shell, "-c", 'eval "$("$@")"; echo "goes on"', shell, *command_line("env", "no-such-profile"))
    assert (result.stdout, len(result.stderr.splitlines())) == ("goes on\n", 1)


def test_docker_reads_the_file(hostile, shown, printed, tmp_path, image, in_docker):
    profile = hostile(PLAIN)
    file = tmp_path / "profile.env"
    file.write_text(printed(profile, "dotenv", *in_docker))
    seen = environment_of("docker", "run", "--rm", "--network", "none", "--env-file", file, image, "env", "-0")
    assert shown(profile, *in_docker).items() <= seen.items()


@pytest.mark.parametrize("name", sorted(PARAGRAPH.keys() - PLAIN.keys()))
def test_what_files_cannot_express_is_refused(hostile, refused, name):
    message = refused("env", hostile({name: PARAGRAPH[name]}), "--format", "dotenv")
    assert f"--format dotenv can't express {name}: it " in message


def test_docker_runs_with_the_options(hostile, shown, printed, image, in_docker):
    profile = hostile(PARAGRAPH)
    options = printed(profile, "docker", *in_docker, "--cpus", "1")
    assert len(shlex.split(options)) == 2 * (1 + len(PARAGRAPH) + 2)
    script = 'eval "docker run --rm --network none $0 $1 $2"'
    variables = shown(profile, *in_docker, "--cpus", "1")
    assert variables["OMP_NUM_THREADS"] == "1"
    seen = environment_of("bash", "-c", script, options.strip(), image, "env -0")
    assert variables.items() <= seen.items()
    mapped = run("bash", "-c", script, options.strip(), image, "grep libjemalloc /proc/self/maps")
    assert variables["LD_PRELOAD"] in mapped.stdout


def test_an_image_is_built_with_the_instructions(hostile, shown, printed, image, in_docker, tmp_path):
    profile = hostile(HOSTILE, PREFIX)
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\n" + printed(profile, "dockerfile", *in_docker))
    tag = "envkit-test-env-formats"
    try:
        run(
            "docker", "build", "--quiet", "--network", "none", "--tag", tag, "--file", tmp_path / "Dockerfile", tmp_path
        )
        seen = environment_of("docker", "run", "--rm", "--network", "none", tag, "env", "-0")
        mapped = run("docker", "run", "--rm", "--network", "none", tag, "grep", "libjemalloc", "/proc/self/maps")
    finally:
        run("docker", "image", "rm", "--force", tag, check=False)
    variables = shown(profile, *in_docker)
    assert {**variables, "STARTED": "with it"}.items() <= seen.items()
    assert variables["LD_PRELOAD"] in mapped.stdout


def test_a_sif_is_built_from_the_definition(hostile, shown, printed, built_image, sif_base, open_folder):
    options = ["--engine", "apptainer", "--sif", built_image("apptainer")]
    profile = hostile(PARAGRAPH, PREFIX)
    variables = shown(profile, *options)
    library = run("apptainer", "--quiet", "exec", options[-1], "base64", variables["LD_PRELOAD"]).stdout
    (open_folder / "library").write_text(library)
    bootstrap, base = sif_base
    # the base image alone, which is quick to pack, with the library where the profile's image has it
    install = f"base64 --decode /library > {variables['LD_PRELOAD']}"
    (open_folder / "definition").write_text(
        f"Bootstrap: {bootstrap}\nFrom: {base}\n\n%files\n    {open_folder}/library /library\n\n"
        f"%post\n    {install}\n\n{printed(profile, 'apptainer', *options)}"
    )
    sif = open_folder / "test.sif"
    run("apptainer", "build", "--mksquashfs-args", SQUASH, sif, open_folder / "definition",
        APPTAINER_TMPDIR=str(open_folder))  # fmt: skip
    seen = environment_of("apptainer", "--quiet", "run", "--cleanenv", sif, "env", "-0")
    assert {**variables, "STARTED": "with it"}.items() <= seen.items()
    mapped = run("apptainer", "--quiet", "run", "--cleanenv", sif, "grep", "libjemalloc", "/proc/self/maps")
    assert variables["LD_PRELOAD"] in mapped.stdout


@pytest.mark.parametrize(
    ("apptainer", "docker", "said"),
    [(1, 0, "apptainer does not answer: planted"), (0, 1, "docker does not answer: planted"), (0, None, None)],
)
def test_where_an_engine_does_not_answer_no_sif_is_built(request, monkeypatch, tmp_path, apptainer, docker, said):
    """As where Docker's client is installed and no daemon runs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, status in (("apptainer", apptainer), ("docker", docker)):
        if status is not None:
            (folder / name).write_text(f"#!/bin/sh\necho planted >&2\nexit {status}\n")
            (folder / name).chmod(0o755)
    monkeypatch.setattr(engines_conftest, "missing", engines_conftest.missing.__wrapped__)  # which remembers
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(globals(), "BASE_ARCHIVE", tmp_path / "none.tar")
    if said is None:
        assert request.getfixturevalue("sif_base") == ("docker", BASE)
        return
    with pytest.raises(pytest.skip.Exception, match=said):
        request.getfixturevalue("sif_base")


def test_a_batch_script_runs_under_slurm_or_bash(hostile, shown, printed, tmp_path):
    profile = hostile(PARAGRAPH, PREFIX)
    script, output = tmp_path / "job.sh", tmp_path / "output"
    script.write_text(printed(profile, "sbatch"))
    if shutil.which("sbatch") and run("sinfo", check=False).returncode == 0:
        run("sbatch", "--wait", "--output", output, script, "env", "-0")
        end = time.monotonic() + WAIT_S  # the file may come over a network
        while not output.exists() and time.monotonic() < end:
            time.sleep(0.2)
        seen = environment_of("cat", output)
    else:
        seen = environment_of("bash", script, "env", "-0")
    variables = shown(profile)
    assert {**variables, "STARTED": "with it"}.items() <= seen.items()
    options = re.findall(r"^#SBATCH (\S+)$", script.read_text(), re.MULTILINE)
    assert options[0] == f"--cpus-per-task={variables['OMP_NUM_THREADS']}"
    assert set(options[1:]) <= {"--hint=nomultithread"}


def test_pyxis_sets_it_in_the_image(hostile, shown, printed, image, in_docker, tmp_path, monkeypatch):
    """Docker is in the place of the plugin: where srun's options end, what runs inside begins."""
    (tmp_path / "srun").write_text(
        f'#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec docker run --rm --network none {image} "$@"\n'
    )
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    profile = hostile(PARAGRAPH, PREFIX)
    script = tmp_path / "job.sh"
    script.write_text(printed(profile, "pyxis", *in_docker))
    variables = shown(profile, *in_docker)
    seen = environment_of("bash", script, "env", "-0")
    assert {**variables, "STARTED": "with it"}.items() <= seen.items()
    assert variables["LD_PRELOAD"] in run("bash", script, "grep", "libjemalloc", "/proc/self/maps").stdout


def test_a_pod_is_valid_by_kubernetes_schema(hostile, shown, printed, image, in_docker):
    profile = hostile(PARAGRAPH, PREFIX)
    pod = yaml.safe_load(printed(profile, "kubernetes", *in_docker))
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
    assert variables_of(pod) == shown(profile, *in_docker)
    (container,) = pod["spec"]["containers"]
    assert container["image"] == image
    assert container["command"] == ["env", "STARTED=with it", "python", "train.py"]


def test_settings_are_json_as_the_editor_takes_it(hostile, shown, printed):
    profile = hostile(PARAGRAPH)
    settings = json.loads(printed(profile, "vscode"))
    jsonschema.validate(settings, SETTINGS)
    assert settings["terminal.integrated.env.linux"] == shown(profile)


def test_jupyter_starts_a_kernel_with_it(hostile, shown, printed, kernel):
    profile = hostile(WITHOUT_DOLLARS, PREFIX)
    execute = kernel(printed(profile, "jupyter"))
    variables = shown(profile)
    seen = json.loads(execute("import json, os; print(json.dumps(dict(os.environ)))"))
    assert {**variables, "STARTED": "with it"}.items() <= seen.items()
    assert variables["LD_PRELOAD"] in execute("print(open('/proc/self/maps').read())")


def test_a_kernel_that_was_started_with_a_profile_checks_it(printed, kernel):
    """torch is imported by then, and has bound the thread that runs cells to one CPU."""
    execute = kernel(printed("intel-omp", "jupyter"))
    assert execute("import torch; print(torch.ones(10**6).add_(1).sum().item())") == "2000000.0\n"
    said = execute("from envkit import check; assert check('intel-omp')")
    assert said.startswith("intel-omp is in effect in this process (checked: preload.intel-openmp, openmp.runtime, ")
    assert said.endswith(", 3 variables)\n")
    wrong = execute("assert not check('gnu-omp')").splitlines()
    assert wrong[0] == "gnu-omp is NOT in effect in this process"
    assert "  openmp.runtime: expected gnu, seen intel" in wrong
    assert wrong[-1].startswith("also set, and can change the outcome: KMP_AFFINITY=")


def test_a_cell_sets_what_it_can_before_torch(hostile, shown, printed, kernel):
    profile = hostile(PARAGRAPH)
    cell = printed(profile, "python")
    execute = kernel(printed("baseline", "jupyter"))
    assert execute(cell) == ""
    variables = shown(profile)
    seen = json.loads(execute("import json; print(json.dumps(dict(os.environ)))"))
    assert (variables.items() - seen.items()) == {("LD_PRELOAD", variables["LD_PRELOAD"])}
    said = execute(f"from envkit import check; assert not check({str(profile)!r})").splitlines()
    assert said[0] == "hostile is NOT in effect in this process"
    assert "  preload.jemalloc: expected mapped, seen not asked for" in said
    assert execute(cell).startswith("RuntimeError: too late: torch is imported already; ")


def test_what_a_cell_set_is_in_effect_or_came_too_late(printed, kernel, write_profile):
    """Nothing but the cell's own note tells of OMP_PLACES."""
    one = write_profile("one", "env:\n  OMP_NUM_THREADS: 1\n  OMP_PLACES: cores\n")
    execute = kernel(printed("baseline", "jupyter"))
    execute(printed(one, "python"))
    said = execute(f"from envkit import check; assert check({str(one)!r})")
    assert said == "one is in effect in this process (checked: 2 variables)\n"
    two = write_profile("two", "env:\n  OMP_NUM_THREADS: 2\n")
    execute("import os; os.environ['OMP_NUM_THREADS'] = '2'; del os.environ['ENVKIT_BEFORE_TORCH']")
    wrong = execute(f"assert not check({str(two)!r})").splitlines()
    fix = "restart the kernel, and set it before anything imports torch"
    assert wrong == [
        "two is NOT in effect in this process",
        f"  set too late, after torch was imported: OMP_NUM_THREADS; {fix}",
    ]


def test_paths_inside_an_image_are_marked_where_they_may_mislead(cli, in_docker):
    result = cli("env", "jemalloc", *in_docker)
    assert result.returncode == 0
    (note,) = result.stderr.splitlines()
    assert note.startswith("envkit: note: the preloaded libraries' paths are those inside the image (docker ")


def test_a_library_of_the_kits_own_is_mounted_as_it_says(cli, image, in_docker, write_profile):
    profile = write_profile("mine", "preload: [mkl-dispatch]\n")  # whoever made the processor
    result = cli("env", profile, "--format", "docker", *in_docker)
    assert result.returncode == 0, result
    (mount,) = re.findall(r"is not in the image: mount it, read-only \((.*)\)", result.stderr)
    options = " ".join(line for line in result.stdout.splitlines() if not line.startswith("#"))
    script = f'docker run --rm --volume "$1:ro" {options} "$2" grep libmkl-dispatch /proc/self/maps'
    assert "/kit/envkit/worker/preloads/" in run("bash", "-c", script, "bash", mount, image).stdout
