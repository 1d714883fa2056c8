"""A machine that shows no processes: /proc is not mounted, as in some containers and chroots."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import command_line

ALONE = ["unshare", "--user", "--map-root-user", "--mount"]
HIDE = 'mount -t tmpfs none /proc && exec "$@"'


@pytest.mark.parametrize(
    "words", [("exec", "baseline", "--", "true"), ("bench", "baseline", "--data", "synthetic", "--steps", "2")],
    ids=["exec", "bench"],
)  # fmt: skip
def test_one_line_says_that_proc_is_missing(tmp_path, words):
    if subprocess.run([*ALONE, "sh", "-c", HIDE, "sh", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system allows no user namespaces")
    hidden = [*ALONE, "sh", "-c", HIDE, "sh", *command_line(*words)]
    result = subprocess.run(hidden, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "envkit: /proc/sys/kernel/random/boot_id: can't be read: No such file or directory; "
        "mount /proc, which shows the processes of this machine\n"
    )
    assert list(Path(tmp_path).iterdir()) == []
