"""What the batch script for Pyxis comes to; a stand-in for srun runs here what it is to run inside."""

from __future__ import annotations

import os
import subprocess

import pytest
from envkit.profiles.formats import pyxis
from hypothesis import HealthCheck, given, settings

from tests.profiles.formats.resolving import VALUES, environment_of, resolved

EXAMPLES = settings.default.max_examples // 4  # each starts several processes
# Without its own options, which begin with two dashes.
SRUN = """\
#!/bin/bash
while [[ $1 == --* ]]; do
    echo "$1" >>"$0.options"
    shift
done
env -0 >"$0.variables"
exec "$@"
"""


@pytest.fixture
def srun(tmp_path, monkeypatch):
    file = tmp_path / "srun"
    file.write_text(SRUN)
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")
    monkeypatch.chdir(tmp_path)
    return file


def ran(script, *command):
    return subprocess.run(
        ["bash", "--norc", "-uc", script, "script", *command], capture_output=True, text=True, check=False
    )


def variables_of(text):
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


@given(VALUES)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_is_set_inside_and_none_for_srun(srun, variables):
    """Which runs on the host, and could not load the image's libraries."""
    script = pyxis.pyxis(resolved({**variables, "LD_PRELOAD": ""}, prefix=["env", "PREFIX=a 'b' $HOME"]))
    inside = environment_of("bash", "--norc", "-uc", script, "script", "env", "-0")
    assert {**variables, "LD_PRELOAD": "", "PREFIX": "a 'b' $HOME"}.items() <= inside.items()
    assert not {*variables, "LD_PRELOAD"} & variables_of(srun.with_suffix(".variables").read_text()).keys()


def test_what_srun_is_told(srun, tmp_path):
    result = ran(pyxis.pyxis(resolved({"A": "1"}, sqsh="/images/it's mine.sqsh")), "pwd")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{tmp_path}\n", "")
    assert srun.with_suffix(".options").read_text().splitlines() == [
        "--ntasks=1", "--cpus-per-task=4", "--container-image=/images/it's mine.sqsh", "--no-container-mount-home",
        f"--container-mounts={tmp_path}:{tmp_path}", f"--container-workdir={tmp_path}",
    ]  # fmt: skip
    told = variables_of(srun.with_suffix(".variables").read_text())
    assert told["ENROOT_LOGIN_SHELL"] == "no"
    assert "NVIDIA_VISIBLE_DEVICES" not in told


def test_a_profile_for_gpus_has_them_inside(srun):
    ran(pyxis.pyxis(resolved(gpus=1)), "true")
    told = variables_of(srun.with_suffix(".variables").read_text())
    assert (told["NVIDIA_VISIBLE_DEVICES"], told["NVIDIA_DRIVER_CAPABILITIES"]) == ("all", "compute,utility")


def test_what_the_job_was_given_does_not_come_along(srun, monkeypatch):
    monkeypatch.setenv("KMP_AFFINITY", "none")
    result = ran(pyxis.pyxis(resolved({"OMP_NUM_THREADS": "2"})), "env", "-0")
    assert result.stderr == "unset, because it could change the outcome: KMP_AFFINITY\n"
    inside = variables_of(result.stdout)
    assert (inside.get("KMP_AFFINITY"), inside["OMP_NUM_THREADS"]) == (None, "2")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("envkit-cpu:debian", "envkit-cpu:debian"),
        ("nvcr.io/nvidia/pytorch:24.01-py3", "'nvcr.io#nvidia/pytorch:24.01-py3'"),
        ("host:5000/kit", "'host:5000#kit'"),
        ("localhost/kit", "'localhost#kit'"),
        ("team/kit", "team/kit"),
        (None, "./your-image.sqsh"),
    ],
)
def test_the_image_in_pyxis_words(image, said):
    assert f" --container-image={said} " in pyxis.pyxis(resolved(image=image))


def test_it_begins_as_other_batch_scripts_do():
    lines = pyxis.pyxis(resolved({"OMP_NUM_THREADS": "2"}, gpus=1)).splitlines()
    assert lines[0] == "#!/bin/bash"
    options = ["--cpus-per-task=2", "--hint=nomultithread", "--gpus=1"]
    assert [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")] == options
    result = ran("\n".join(lines))
    assert (result.returncode, result.stderr) == (2, "use: sbatch THIS_FILE python train.py\n")
