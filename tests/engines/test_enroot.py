"""What Enroot is told, and how its engine deals with what it answers.

No package has Enroot itself. A stand-in takes what ``enroot start`` is documented to take, and runs the command here.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from envkit.common.errors import InputError
from envkit.engines import container, enroot, get_all, step
from envkit.engines.base import PROJECT, EngineOptions, Launch, Outcome
from envkit.engines.enroot import EnrootEngine
from envkit.engines.messages import EngineFault, ExitStatus, TimedOut
from envkit.engines.setup_messages import NoDriver, OptionWithoutEffect, UnmountableByEnroot, UnpassableValue
from envkit.engines.slurm import client
from envkit.engines.start import OF_EACH_NODE
from envkit.messages import Printed
from envkit.rendering import text_of
from envkit.worker.request import HostFolder, Ranks, RunCommand, Train, UserCommand, WorkerRequest

from tests.processes import gone, until
from tests.refusals import refusal

SETTINGS = [
    "ENROOT_CONFIG_PATH=/dev/null", "ENROOT_LOGIN_SHELL=no", "ENROOT_MOUNT_HOME=no", "ENROOT_REMAP_ROOT=no",
    "ENROOT_ROOTFS_WRITABLE=no",
]  # fmt: skip
RC = str(PROJECT / "runner/envkit/engines/enroot_rc.sh")
FSTAB = "none:x-create=dir,rbind"
CODE = f"{PROJECT}/runner/envkit:/kit/envkit:{FSTAB},ro,nosuid,nodev"
NO_GPUS = ["--env", "NVIDIA_VISIBLE_DEVICES=void"]
GPUS = ["--env", "NVIDIA_VISIBLE_DEVICES=all", "--env", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
# What serves the image is in a process group of its own, as a shell makes one for a job.
STAND_IN = """\
#!/bin/bash
[[ $1 != version ]] || { echo 3.5.0; exit; }
env >"$0.variables"
set -m
sleep 60 >/dev/null 2>&1 &
echo $! >"$0.server"
rc='' && while [[ $1 != -- ]]; do
    [[ $1 != --rc ]] || rc=$2
    shift
done
exec sh "$rc" "${@:3}"
"""

TRAIN, WITH_DATA = Train("cnn", "synthetic"), Train("cnn", HostFolder("/my/data"))
COMMAND = RunCommand(UserCommand(("true",), "/home/me"))


@pytest.fixture
def cli(cli_in_process):
    """Nothing here needs the command line as a process of its own."""
    return cli_in_process


@pytest.fixture
def engine():
    """Without anything that is looked at when one is made."""
    made = EnrootEngine.__new__(EnrootEngine)
    made.given, made._sqsh = EngineOptions(), Path("/images/x.sqsh")
    return made


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Have a program called enroot on the PATH; its file."""
    file = tmp_path / "bin/enroot"
    file.parent.mkdir()

    def make(text=STAND_IN):
        file.write_text(text)
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(file.parent), prepend=os.pathsep)
        return file

    monkeypatch.setattr(enroot, "KERNEL", tmp_path / "no-switches")
    return make


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "mine.sqsh"
    file.write_bytes(b"hsqs and more")
    return file


# --- the command ---


def test_how_a_worker_is_started(engine):
    launch = Launch(WITH_DATA, {"OMP_NUM_THREADS": "2", "LD_PRELOAD": "/x.so"})
    assert engine.command(launch) == [
        "env", *SETTINGS, "enroot", "start", *NO_GPUS,
        "--mount", CODE, "--mount", f"/my/data:/data:{FSTAB},ro,nosuid,nodev", "--rc", RC, "--", "/images/x.sqsh",
        "/kit", "env", "OMP_NUM_THREADS=2", "LD_PRELOAD=/x.so",
        "/opt/kit/bin/python", "/kit/envkit/worker/__main__.py", "-",
    ]  # fmt: skip
    assert engine.request(launch) == WorkerRequest(Train("cnn", HostFolder("/data")))


def test_any_value_of_a_profile_reaches_the_worker_and_not_enroot(engine):
    """What is given to --env is a line of a file, without the quotes around it, and is seen by Enroot's own shell."""
    values = {"A": "1,2", "B": "two\nlines", "C": "'quoted'", "D": "${HOME}", "ENROOT_X": "1"}
    command = engine.command(Launch(TRAIN, values))
    at = command.index("/kit")
    assert command[at + 1 : at + 2 + len(values)] == ["env", *(f"{name}={value}" for name, value in values.items())]
    assert [word for word in command[:at] if "=" in word and not word.startswith("ENROOT_")] == [
        NO_GPUS[1], CODE
    ]  # fmt: skip


def test_a_prefix_stands_before_the_interpreter(engine):
    command = engine.command(Launch(TRAIN, prefix=("numactl", "--localalloc")))
    assert command[-5:] == ["numactl", "--localalloc", "/opt/kit/bin/python", "/kit/envkit/worker/__main__.py", "-"]


def test_a_command_of_ones_own_runs_in_its_folder_and_can_write_there(engine):
    command = engine.command(
        Launch(variables={"A": "1"}, program=("python", "x.py"), program_folder="/home/me/training")
    )
    assert f"/home/me/training:/home/me/training:{FSTAB},rw,nosuid,nodev" in command
    assert command[command.index("--") :] == [
        "--", "/images/x.sqsh", "/home/me/training", "env", "HOME=/tmp", "A=1", "python", "x.py",
    ]  # fmt: skip


def test_only_training_on_gpus_is_given_them(engine):
    """Whatever the image says, which Enroot's hook hears as well."""
    for gpus, said in ((True, GPUS), (False, NO_GPUS)):
        command = engine.command(Launch(TRAIN, gpus=gpus))
        assert command[command.index("start") + 1 : command.index("--mount")] == said


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\\b", "a$b", "a`b", 'a"b'])
def test_a_folder_that_enroot_can_not_mount(engine, name):
    for make in (engine.command, engine.pyxis):
        found = refusal(make, Launch(Train("cnn", HostFolder(f"/data/{name}"))))
        assert found == UnmountableByEnroot(f"/data/{name}")


# --- the caller's variables ---


def test_what_is_passed_on_is_named_alone(engine):
    """Anybody may read a command line."""
    launch = Launch(COMMAND, {"A": "1"}, passed_on={"TOKEN": "secret", "A": "2"})
    command = engine.command(launch)
    assert "secret" not in " ".join(command)
    assert [command[at + 1] for at, word in enumerate(command) if word == "--env"] == [NO_GPUS[1], "TOKEN"]
    assert enroot.callers(launch, {"B": "1"}) == {"B": "1", "TOKEN": "secret"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("A", "two\nlines"), ("A", "'quoted'"), ("A", '"quoted" '), ("ENROOT_A", "1"), ("BASH_FUNC_a%%", "() { :; }")],
)
def test_what_enroot_would_pass_on_as_something_else(engine, name, value):
    assert refusal(engine.command, Launch(COMMAND, passed_on={name: value})) == UnpassableValue(name)


@pytest.mark.parametrize("value", ["", "'", "it's", "'a' and b", "a=b", "$x ${y}"])
def test_what_enroot_passes_on_as_it_is(engine, value):
    assert "A" in engine.command(Launch(COMMAND, passed_on={"A": value}))


def test_settings_of_the_callers_do_not_reach_a_container():
    """Those that say where Enroot works do; the machine's own are in /etc/enroot/enroot.conf."""
    kept = {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/run/me", "ENROOT_RUNTIME_PATH": "/r", "ENROOT_DATA_PATH": "/d"}
    dropped = {
        "ENROOT_MOUNT_HOME": "yes", "ENROOT_ROOTFS_WRITABLE": "yes", "ENROOT_CONFIG_PATH": "/home/me/.config/enroot",
        "ENROOT_LOGIN_SHELL": "yes", "NVIDIA_VISIBLE_DEVICES": "0", "MELLANOX_VISIBLE_DEVICES": "all",
    }  # fmt: skip
    assert enroot.callers(Launch(), {**kept, **dropped}) == kept
    asked_for = {"NVIDIA_VISIBLE_DEVICES": "0"}
    assert enroot.callers(Launch(passed_on=asked_for), {**kept, **dropped}) == {**kept, **asked_for}


# --- what has to be there ---


def assert_refused(options: EngineOptions, *said: str) -> None:
    with pytest.raises(InputError) as caught:
        EnrootEngine(options)
    for words in said:
        assert words in text_of(caught.value)


def test_enroot_is_missing(monkeypatch, tmp_path, image):
    monkeypatch.setenv("PATH", str(tmp_path))
    where = "https://github.com/NVIDIA/enroot/blob/master/doc/installation.md"
    assert_refused(EngineOptions(sqsh=str(image)), f"Enroot is not installed: see {where}")


@pytest.mark.parametrize(
    ("switch", "mend"),
    [
        ("user/max_user_namespaces", "user.max_user_namespaces is 0; have the administrator set it to 2 or more"),
        (
            "kernel/unprivileged_userns_clone",
            "kernel.unprivileged_userns_clone is 0; have the administrator set it to 1",
        ),
    ],
)
def test_user_namespaces_are_switched_off(stand_in, monkeypatch, tmp_path, image, switch, mend):
    stand_in()
    file = tmp_path / "sys" / switch
    file.parent.mkdir(parents=True)
    file.write_text("0\n")
    monkeypatch.setattr(enroot, "KERNEL", tmp_path / "sys")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert_refused(EngineOptions(sqsh=str(image)), "Enroot needs user namespaces", mend)
    file.write_text("15000\n")
    EnrootEngine(EngineOptions(sqsh=str(image)))


def test_root_needs_no_right_of_an_ordinary_user(stand_in, monkeypatch, tmp_path, image):
    stand_in()
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/unprivileged_userns_clone").write_text("0\n")
    monkeypatch.setattr(enroot, "KERNEL", tmp_path / "sys")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    EnrootEngine(EngineOptions(sqsh=str(image)))


@pytest.mark.parametrize(
    ("name", "how"), [("envkit-cpu-x", "make sqsh VARIANT=x, or name another"), ("mine", "make sqsh, or name another")]
)
def test_the_image_is_missing(stand_in, refused, tmp_path, name, how):
    stand_in()
    file = tmp_path / f"{name}.sqsh"
    line = refused("bench", "baseline", "--engine", "enroot", "--sqsh", file)
    assert line == f"envkit: {file}: No such file or directory; build it with: {how}"


def test_a_file_that_is_no_image(stand_in, tmp_path):
    stand_in()
    (tmp_path / "x.sif").write_text("#!/usr/bin/env run-singularity\n")
    said = "x.sif: not a squashfs, as Enroot's images are; make one with: make sqsh"
    assert_refused(EngineOptions(sqsh=str(tmp_path / "x.sif")), said)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (">&2 echo \"mkdir: cannot create directory '/run/enroot': Permission denied\"", "mkdir: cannot create"),
        ("echo Invalid configuration file: /etc/enroot/enroot.conf", "Invalid configuration file"),
        ("true", "it printed nothing"),
    ],
)
def test_enroot_does_not_say_its_version(stand_in, image, printed, said):
    stand_in(f"#!/bin/sh\n{printed}\nexit 1\n")
    mend = "; see its settings: https://github.com/NVIDIA/enroot/blob/master/doc/configuration.md"
    assert_refused(EngineOptions(sqsh=str(image)), f"Enroot can't be used here: {said}", mend)


def test_what_the_record_says_of_it(stand_in, image):
    stand_in()
    described = EnrootEngine(EngineOptions(sqsh=str(image))).describe()
    digest = subprocess.run(["sha256sum", image], capture_output=True, text=True, check=True).stdout.split()[0]
    assert described == {"name": "enroot", "version": "3.5.0", "image": str(image), "digest": f"sha256:{digest}"}


@pytest.mark.parametrize("option", [{"cpus": "2"}, {"memory": "4g"}, {"sif": "x.sif"}, {"image": "x"}])
def test_options_that_mean_nothing_to_it(stand_in, image, option):
    stand_in()
    found = refusal(get_all, ["enroot"], EngineOptions(sqsh=str(image), **option))
    assert found == OptionWithoutEffect(f"--{next(iter(option))}", ("enroot",))


# --- a worker's life ---


@pytest.fixture
def started(stand_in, image):
    """The engine, with the stand-in for Enroot, whose file it is."""
    file = stand_in()
    return EnrootEngine(EngineOptions(sqsh=str(image))), file


def command(tmp_path: Path, script: str, **more: object) -> Launch:
    return Launch(program=("sh", "-c", script), program_folder=str(tmp_path), timeout_s=20, **more)


def test_a_command_goes_to_its_folder_with_its_variables(started, tmp_path):
    engine, file = started
    variables = {"A": "two\nlines", "LD_PRELOAD": ""}
    outcome = engine.run(command(tmp_path, 'pwd; echo "$A$LD_PRELOAD"', variables=variables, passed_on={"T": "x"}))
    assert (outcome.stdout, outcome.failure) == (f"{tmp_path}\ntwo\nlines\n", None)
    seen = file.with_suffix(".variables").read_text().splitlines()
    assert {*SETTINGS, "T=x"} <= {*seen}
    assert not any(line.startswith(("A=", "LD_PRELOAD=")) for line in seen)


def test_a_folder_that_is_not_there_inside(tmp_path):
    result = subprocess.run(["sh", RC, tmp_path / "none", "echo", "hi"], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert result.stdout == ""


@pytest.mark.parametrize(
    "script", ["sleep 60", pytest.param("trap '' TERM; sleep 60 & wait; sleep 60", marks=pytest.mark.slow)]
)
def test_nothing_is_left_of_one_that_is_ended_early(started, tmp_path, script):
    """What serves the image is in another process group, which no signal to the worker's reaches."""
    engine, file = started
    server = file.with_suffix(".server")
    worker = engine.start(command(tmp_path, f"touch {tmp_path}/ready; {script}"))
    try:
        until((tmp_path / "ready").exists)
        number = int(server.read_text())
        assert not gone(number)
    finally:
        worker.end()
    until(lambda: gone(number))


def test_one_that_takes_too_long(started, tmp_path):
    engine, _ = started
    begin = time.monotonic()
    launch = Launch(program=("sleep", "600"), program_folder=str(tmp_path), timeout_s=0.5)
    assert engine.run(launch).failure == TimedOut(0.5)
    assert time.monotonic() - begin < 300


@pytest.mark.parametrize(
    ("printed", "fix"),
    [
        (
            "[ERROR] Command not found: squashfuse",
            "install what it names: to start an image's file it takes squashfuse ",
        ),
        ("[ERROR] Command not found: nvidia-container-cli, see", "install its tools: https://github.com/NVIDIA/libnvi"),
        ("enroot-unshare: failed to unshare user namespace: EPERM", "an ordinary user may make none here: https://"),
        ("[ERROR] Failed to mount: /x.sqsh", "/dev/fuse must be open to you (sudo chmod 666 /dev/fuse), and the image"),
    ],
)
def test_what_enroot_says_has_a_mend(engine, printed, fix):
    outcome = engine._explained(Outcome("", printed, 1.0, ExitStatus(1)))
    assert isinstance(outcome.failure, EngineFault)
    assert outcome.failure.fix.startswith(fix)
    fine = Outcome("", printed, 1.0, None)
    assert engine._explained(fine) == fine


def test_a_machine_without_a_driver(started, tmp_path, monkeypatch):
    def require():
        raise InputError(NoDriver(Printed("it is not there")))

    monkeypatch.setattr(container, "require_gpus", require)
    with pytest.raises(InputError, match=r"engines\.no-driver"):
        started[0].run(command(tmp_path, "true", gpus=True))


# --- several nodes ---


@pytest.fixture
def on_nodes(engine, monkeypatch):
    """What is asked of a step of two nodes, where Slurm starts containers itself and where it does not."""

    def ask(launch, pyxis):
        asked = []
        monkeypatch.setattr(client, "starts_containers", lambda: pyxis)
        monkeypatch.setattr(
            step, "run", lambda *given, **named: asked.append((given, named)) or Outcome("", "", 1, None)
        )
        engine.run(launch)
        return asked[0]

    return ask


RANKS = Launch(
    Ranks(2, WITH_DATA, nodes=2), {"LD_PRELOAD": "/x.so"}, {"HOME": "/home/me"},
    passed_on={"T": "secret"}, nodes=2, timeout_s=9.0,
)  # fmt: skip


def test_slurm_makes_the_containers_where_it_can(on_nodes, engine):
    (argv, environment, nodes, timeout_s, request), named = on_nodes(RANKS, pyxis=True)
    assert argv == ["/opt/kit/bin/python", "/kit/envkit/worker/__main__.py", "-"]
    assert request == WorkerRequest(Ranks(2, Train("cnn", HostFolder("/data")), nodes=2))
    assert (environment, nodes, timeout_s) == ({"T": "secret", "LD_PRELOAD": "/x.so"}, 2, 9.0)
    assert named["container"] == engine.pyxis(RANKS) == [
        "--container-image=/images/x.sqsh",
        f"--container-mounts={PROJECT}/runner/envkit:/kit/envkit:ro,/my/data:/data:ro",
        "--container-workdir=/kit", "--no-container-mount-home", "--no-container-remap-root",
        "--no-container-entrypoint",
    ]  # fmt: skip
    assert named["made"] == {**dict(one.split("=") for one in SETTINGS), "NVIDIA_VISIBLE_DEVICES": "void"}


def test_elsewhere_each_node_starts_enroot(on_nodes, engine):
    (argv, environment, nodes, timeout_s, request), named = on_nodes(RANKS, pyxis=False)
    assert request == engine.request(RANKS)
    # the network interface by which a node reaches the others is its own, and so is its number
    plain = engine.command(RANKS)
    own = [part for name in OF_EACH_NODE for part in ("--env", name)]
    at = plain.index("start") + 1
    assert argv == [*plain[:at], *own, *plain[at:]]
    assert (environment, nodes, timeout_s, named) == ({"HOME": "/home/me", "T": "secret"}, 2, 9.0, {})
