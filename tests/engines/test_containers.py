"""The container engines: real workers in the image that ``images/build`` makes, short ones."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from envkit import engines
from envkit.bench import record
from envkit.engines import container, owner
from envkit.engines.base import EngineOptions, Launch
from envkit.rendering import text

from tests.conftest import command_line
from tests.processes import until
from tests.records import problem_of

SHORT = ("--steps", "2", "--warmup-steps", "1", "--blocks", "1")
# Without any worker before it: nothing is warmed up for a full training. With this seed the profile comes before the
# baseline (envkit.bench.study).
ENDLESS = ("--full", "--epochs", "4000000", "--data", "synthetic", "--seed", "3")
# By this setting, which changes nothing for one thread, endless workers of these tests are told from others.
MARK = "GOMP_SPINCOUNT=4000001"
PATIENCE_S = 240
OCI = ("docker", "podman")
ALL = (*OCI, "apptainer")


@pytest.fixture
def measured(cli, tmp_path, engine_options, surroundings, project):
    """Measure one block in containers: the result, and the events of the record."""

    def run(engine, profiles, *options, **variables):
        folder = tmp_path / "run"
        arguments = ["bench", *profiles.split(), *engine_options(engine), *SHORT, "--output", folder, *options]
        result = cli(*arguments, cwd=project, **surroundings, **variables)
        return result, record.read(folder) if (folder / record.FILE_NAME).exists() else []

    return run


@pytest.fixture
def one_thread(write_profile):
    """What endless workers are given: how they end does not depend on it, and other tests have a CPU meanwhile."""
    return write_profile("one-thread", f"env:\n  OMP_NUM_THREADS: 1\n  {MARK.replace('=', ': ')}\n")


@pytest.fixture
def endless(engine_options, one_thread, tmp_path, surroundings, project):
    """A measurement that has a worker running and won't end by itself. Nothing of it is left after the test."""
    processes = []

    def start(engine, *options):
        image = engine_options(engine)
        process = subprocess.Popen(
            command_line("bench", one_thread, *image, *ENDLESS, "--output", tmp_path / "run", *options),
            cwd=project, env={**os.environ, **surroundings}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        processes.append(process)
        end = time.monotonic() + PATIENCE_S
        while not workers(begun=True):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.1)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
    for pid in workers():
        os.kill(pid, signal.SIGKILL)


def workers(begun=False):
    """The processes that run an endless worker, or start one; ``begun`` for those of Python alone."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            given = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = b"/kit/envkit/worker/__main__.py" in words and MARK.encode() in (*words, *given)
        if ours and (not begun or b"python" in words[0]):
            found.append(int(entry.name))
    return found


def containers(engine, project):
    """Those of this process of the tests, which all have its own copy of the project."""
    ours = ("--filter", f"label={owner.LABEL}", "--filter", f"volume={project}/runner/envkit")
    command = [engine, "ps", "--all", "--quiet", *ours]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def nothing_remains(engine, image, project):
    """No container, process or mount of ours; what was killed takes a moment to go."""

    def left():
        found = [*workers(), *(containers(engine, project) if engine in OCI else ())]
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                words = path.read_bytes()
                if b"Apptainer runtime" in words and Path(image).name.encode() in words:
                    found.append(words)
        return found or Path(image).name in Path("/proc/mounts").read_text()

    until(lambda: not left())


def samples(events):
    return {event["arm"]: event for event in events if event["event"] == "sample"}


@pytest.mark.parametrize("engine", ALL)
def test_a_profile_is_in_effect_inside(measured, write_profile, engine):
    """One with both kinds of libraries: each profile more takes two more workers. An ordinary user's Apptainer has no
    limits; the number of CPUs is worked out inside those of the others."""
    callers = {"OMP_NUM_THREADS": "7", "MALLOC_ARENA_MAX": "1", "LD_PRELOAD": "/nowhere.so"}
    preload = "preload: [intel-openmp, jemalloc]\nexpect:\n  malloc.allocator: jemalloc\n"
    both = write_profile("both", f"extends: intel-omp\n{preload}")
    limits = ("--cpus", "1") if engine in OCI else ()
    result, events = measured(engine, str(both), *limits, **callers)
    assert result.returncode == 0, result
    run, sample = events[0], samples(events)
    assert sample["baseline"]["evidence"]["variables"]["sensitive"] == {}
    assert " verified in every process" in " ".join(result.stdout.split())
    evidence, environment = sample["both"]["evidence"], run["environments"]["both"]
    assert (evidence["openmp"]["runtime"], evidence["malloc"]["allocator"]) == ("intel", "jemalloc")
    # exactly the profile's variables, and none of the caller's
    assert evidence["variables"]["sensitive"] == dict(sorted(environment["variables"].items()))
    assert environment["preload"].keys() == {"intel-openmp", "jemalloc"}
    for path in environment["preload"].values():
        assert evidence["variables"]["preloaded"][path] == "mapped"
    assert evidence["limits"]["user_id"] != 0
    assert sample["both"]["losses"] == pytest.approx(sample["baseline"]["losses"], rel=1e-5)
    engine_document = run["engines"][engine]["engine"]
    assert engine_document["digest"].startswith("sha256:")
    assert engine_document["version"]
    assert run["engines"][engine]["inspection"]["providers"]
    if limits:
        cpus_are_worked_out_inside_the_limits(run["engines"][engine]["inspection"]["facts"], environment, sample)


def cpus_are_worked_out_inside_the_limits(facts, environment, sample):
    assert (facts["usable_cpus"], facts["cpu_quota"]) == (1, 1.0)
    assert environment["variables"]["OMP_NUM_THREADS"] == "1"
    assert sample["both"]["evidence"]["openmp"]["max_threads"] == 1
    assert {arm: one["evidence"]["limits"]["cpu_quota"] for arm, one in sample.items()} == {
        "baseline": 1.0, "both": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("engine", OCI)
def test_a_cpu_set_is_seen_inside(engine, image_of):
    used = engines.get_all([engine], EngineOptions(image=image_of(engine), cpuset_cpus="0"))[engine]
    outcome = used.run(Launch((), program=("grep", "Cpus_allowed_list", "/proc/self/status")))
    assert outcome.stdout.split() == ["Cpus_allowed_list:", "0"], outcome


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("docker", "was killed because it needed more memory than its limit of 300m (--memory)"),
        ("podman", "was killed by signal SIGKILL, most likely because it reached its memory limit of 300m (--memory)"),
    ],
)
def test_the_memory_limit_is_named_when_it_kills(measured, engine, words):
    result, events = measured(engine, "baseline", "--memory", "300m")
    assert result.returncode == 1
    (failure,) = [event for event in events if event["event"] == "failure"]
    assert text(problem_of(failure)) == f"{words} (warming up)"
    assert words in " ".join(result.stdout.split())


@pytest.mark.parametrize("engine", OCI)
def test_numactl_may_place_memory(engine, image_of):
    """Docker's seccomp filter refuses its system calls to a container as it is."""
    used = engines.get_all([engine], EngineOptions(image=image_of(engine)))[engine]
    outcome = used.run(Launch(program=("numactl", "--show"), prefix=("numactl", "--interleave=all")))
    assert outcome.failure is None, outcome
    assert "policy: interleave" in outcome.stdout


# Its capabilities, whether it may gain any, and how many processes may run.
PRIVILEGES = """
import pathlib
status = dict(line.split(":\t", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
most = next((path.read_text().strip() for path in pathlib.Path("/sys/fs/cgroup").glob("**/pids.max")), "not shown")
print(*(status[name] for name in ("CapEff", "CapBnd", "NoNewPrivs")), most)
"""


@pytest.mark.parametrize("engine", OCI)
def test_a_container_has_no_privileges(engine, image_of):
    used = engines.get_all([engine], EngineOptions(image=image_of(engine)))[engine]
    outcome = used.run(Launch(program=(container.INTERPRETER, "-c", PRIVILEGES)))
    *found, most = outcome.stdout.split()
    assert found == ["0" * 16, "0" * 16, "1"], outcome
    assert int(most) >= container.FEWEST_PROCESSES


@pytest.mark.parametrize("engine", ["podman", "apptainer"])  # Docker's are stopped and removed in the tests below
def test_a_worker_that_hangs_is_stopped_and_removed(
    cli, engine, engine_options, one_thread, image_of, surroundings, project, tmp_path
):
    arguments = ["bench", one_thread, *engine_options(engine), *ENDLESS, "--timeout", "5s"]
    result = cli(*arguments, "--output", tmp_path / "run", cwd=project, **surroundings)
    events = record.read(tmp_path / "run")
    assert result.returncode == 1
    assert [text(problem_of(event)) for event in events if event["event"] == "failure"] == [
        "did not end within 5 s (--timeout) and was stopped"
    ]
    nothing_remains(engine, image_of(engine), project)


@pytest.mark.parametrize(
    ("engine", "number"), [("docker", signal.SIGINT), ("podman", signal.SIGTERM), ("apptainer", signal.SIGINT)]
)
def test_an_interrupt_removes_the_worker(endless, engine, number, image_of, project):
    process = endless(engine)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    nothing_remains(engine, image_of(engine), project)


@pytest.mark.parametrize("engine", ALL)
def test_after_kill_9_the_next_command_removes_what_remains(
    endless, engine, image_of, cli, simulation, surroundings, project, tmp_path
):
    process = endless(engine)
    process.kill()
    process.communicate()
    assert workers()  # the runner had no chance to stop it
    short = ("--data", "synthetic", "--blocks", 1, "--steps", 1, "--warmup-steps", 1, "--output", tmp_path / "next")
    quick = ("--python", simulation.python)
    assert cli("bench", "baseline", *quick, *short, cwd=project, **surroundings).returncode == 0
    nothing_remains(engine, image_of(engine), project)


def test_another_runners_containers_are_left_alone(endless, cli, surroundings, project, tmp_path):
    endless("docker")
    running = containers("docker", project)
    assert running
    other = tmp_path / "tmp"  # and so with a machine lock of its own, as on a shared Docker host
    other.mkdir()
    cli("bench", "no-such-profile", cwd=project, **{**surroundings, "TMPDIR": str(other)})
    assert containers("docker", project) == running


def test_engines_are_compared(cli, engine_options, image_of, surroundings, project, tmp_path):
    engine_options("docker")
    engine_options("apptainer")
    folder = tmp_path / "run"
    result = cli(
        "compare-engines", "baseline", *SHORT, "--image", image_of("docker"),
        "--sif", image_of("apptainer"), "--output", folder, cwd=project, **surroundings,
    )  # fmt: skip
    assert result.returncode == 0, result
    events = record.read(folder)
    assert samples(events).keys() == {"local", "docker", "apptainer"}
    assert {event["digests"]["initial_weights"] for event in samples(events).values()} != set()
    assert len({event["digests"]["initial_weights"] for event in samples(events).values()}) == 1
    for name in ("docker", "apptainer"):
        assert f"{name} - too few blocks" in " ".join(result.stdout.split())


def test_resuming_with_another_image_is_refused(cli, image_of, open_folder, surroundings, project, tmp_path):
    image, other, folder = image_of("docker"), "envkit-test-resume", tmp_path / "run"
    subprocess.run(["docker", "tag", image, other], check=True)
    training = ("--in-place", "--whole-command", "--", "sleep", "0.1")  # no torch, which takes seconds to import
    named = ("--engine", "docker", "--image", other, "--blocks", 1, "--output", folder)
    try:
        result = cli("bench", "baseline", *named, *training, cwd=open_folder / "runs", **surroundings)
        assert result.returncode == 0, result
        subprocess.run(
            ["docker", "build", "--quiet", "--tag", other, "-"], input=f"FROM {image}\nLABEL another=image\n",
            text=True, check=True, capture_output=True,
        )  # fmt: skip
        result = cli("bench", "--resume", folder, cwd=project, **surroundings)
    finally:
        subprocess.run(["docker", "rmi", "--force", other], capture_output=True, check=True)
    assert result.returncode == 2
    assert "engine.digest was sha256:" in result.stderr
    assert "start a new run" in result.stderr


# --- what can't be used ---


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("docker", "Docker has no image 'envkit-no-such-image'; build it with: make image"),
        ("podman", "Podman has no image 'envkit-no-such-image'; build it with: make image ENGINE=podman"),
    ],
)
def test_an_image_that_is_missing(refused, requires, engine, words):
    requires(engine)
    assert words in refused("bench", "baseline", "--engine", engine, "--image", "envkit-no-such-image")


def test_a_name_that_no_image_can_have(refused, requires):
    requires("docker")
    line = refused("bench", "baseline", "--engine", "docker", "--image", "Not A Name")
    assert line.startswith("envkit: --image Not A Name: ")
    assert line.endswith("give a name that Docker has (docker images)")


def test_a_sif_that_is_missing(refused, requires, tmp_path):
    requires("apptainer")
    line = refused("bench", "baseline", "--engine", "apptainer", "--sif", tmp_path / "no.sif")
    assert "no.sif: No such file or directory; build it with: make sif" in line


def test_a_sif_that_is_truncated(refused, engine_options, open_folder, surroundings, project):
    *_, sif = engine_options("apptainer")
    short = open_folder / "truncated.sif"
    with Path(sif).open("rb") as whole:
        short.write_bytes(whole.read(Path(sif).stat().st_size // 2))
    line = refused("bench", "baseline", "--engine", "apptainer", "--sif", short, cwd=project, **surroundings)
    assert "the image is damaged: build it again with make sif" in line


@pytest.mark.skipif(os.getuid() != 0, reason="only root can close /dev/fuse")
def test_fuse_that_is_not_readable(engine_options, surroundings, project, tmp_path):
    """For this command alone: others on this machine go on with theirs."""
    closed = f'mknod -m 600 {tmp_path}/fuse c 10 229 && mount --bind {tmp_path}/fuse /dev/fuse && exec "$@"'
    bench = command_line("bench", "baseline", *engine_options("apptainer"))
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", closed, "sh", *bench],
        cwd=project, env={**os.environ, **surroundings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, ""), result
    (line,) = result.stderr.splitlines()
    assert "/dev/fuse must be readable and writable: sudo chmod 666 /dev/fuse" in line


@pytest.mark.parametrize("engine", OCI)
def test_a_library_that_the_image_lacks(refused, engine_options, engine, surroundings, project):
    image = f"envkit-test-bare-{engine}"
    options = [*engine_options(engine)[:2], "--image", image]
    build = [engine, "build", "--quiet", "--tag", image, "-"]
    script = f"FROM {engine_options(engine)[-1]}\nUSER root\nRUN rm -f /opt/kit/lib/libiomp5.so\nUSER kit\n"
    subprocess.run(build, input=script, text=True, check=True, capture_output=True)
    try:
        line = refused("bench", "intel-omp", *options, cwd=project, **surroundings)
    finally:
        subprocess.run([engine, "rmi", "--force", image], capture_output=True, check=True)
    assert "preloads intel-openmp, which is not installed (looked in /opt/kit/lib" in line


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--cpus", "many", "--cpus many: give a number of CPUs"), ("--memory", "much", "--memory much: give bytes")],
)
def test_limits_that_are_none(refused, requires, option, value, words):
    requires("docker")
    assert words in refused("bench", "baseline", "--engine", "docker", option, value)


def test_more_cpus_than_there_are(refused, engine_options, surroundings, project):
    line = refused("bench", "baseline", *engine_options("docker"), "--cpus", "100000", cwd=project, **surroundings)
    assert "Range of CPUs" in line


# --- Docker's daemon ---
