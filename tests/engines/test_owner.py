"""Whose a worker is, and when it can be taken for left behind."""

from __future__ import annotations

import os
import subprocess

import pytest
from envkit.engines import owner


@pytest.fixture
def gone():
    """A process number that was this user's and is free again."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def of(pid: int, **changed: str) -> str:
    names = ("host", "user", "boot", "namespace", "pid", "start")
    fields = dict(zip(names, owner.me().split("/"), strict=True)) | {"pid": str(pid), **changed}
    return "/".join(fields.values())


def test_one_that_runs_is_not_gone_and_one_that_ended_is(gone):
    assert not owner.is_gone(owner.me())
    assert owner.is_gone(of(gone))
    assert owner.is_gone(of(os.getpid(), start="1"))  # another process has its number


@pytest.mark.parametrize("elsewhere", [{"host": "other"}, {"user": "12345"}, {"namespace": "pid:[1]"}])
def test_nobody_is_taken_for_gone_who_cannot_be_seen(gone, elsewhere):
    assert not owner.is_gone(of(gone, **elsewhere))


def test_nobody_outlives_a_restart_of_the_machine(gone):
    assert owner.is_gone(of(gone, boot="before", namespace="pid:[1]"))


def test_what_is_no_owner_is_left_alone():
    assert not owner.is_gone("somebody")
