"""What ``envkit exec`` refuses, in one line and before anything runs."""

from __future__ import annotations

import pytest


def test_a_library_that_is_missing(refused, simulation, write_profile):
    profile = write_profile("mine", "preload: [mimalloc]\n")
    said = refused("exec", "--python", simulation.python, profile, "--", "true")
    assert "preloads mimalloc, which is not installed" in said


def test_a_temporary_folder_that_is_not_there(refused, tmp_path):
    said = refused("exec", "baseline", "--", "true", TMPDIR=str(tmp_path / "none"))
    assert f"{tmp_path}/none: No such file or directory; set TMPDIR" in said


@pytest.mark.parametrize(
    ("name", "mode", "status", "said"),
    [
        ("no-such-command", None, 127, "no-such-command: no such command on the PATH"),
        ("./missing", None, 127, "./missing: no such file"),
        # a command line in quotes, as other tools take it
        ("sh run.sh", None, 127, "sh run.sh: no such command on the PATH; leave the quotes out: sh run.sh"),
        ("/bin/sh run.sh", None, 127, "/bin/sh run.sh: no such file; leave the quotes out: /bin/sh run.sh"),
        ("my script.sh", None, 127, "my script.sh: no such command on the PATH"),
        ("./plain", 0o644, 126, "./plain: not executable; fix that with: chmod +x ./plain"),
        ("./", None, 126, "./: is a folder"),
        ("./script", 0o755, 127, "./script: No such file or directory"),  # its interpreter is not there
    ],
)
def test_a_command_that_cannot_be_started(execute, tmp_path, name, mode, status, said):
    if mode is not None:
        (tmp_path / name).write_text("#!/no/such/interpreter\n")
        (tmp_path / name).chmod(mode)
    result = execute("baseline", name)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", f"envkit: {said}\n")
