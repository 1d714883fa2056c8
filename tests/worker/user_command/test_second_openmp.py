"""Which second OpenMP runtime a program that aborted had loaded."""

from __future__ import annotations

import json

import pytest
from envkit.worker.messages.user_command import SecondOpenMP
from envkit.worker.user_command import second_openmp

FIRST = "/usr/lib/libomp.so.5"


@pytest.fixture
def leave(tmp_path):
    def leave(*libraries, pid=7):
        (tmp_path / f"libraries.{pid}").write_text(json.dumps({"pid": pid, "libraries": libraries}))

    return leave


def test_the_runtime_that_was_loaded_last_is_named(leave, tmp_path):
    leave(("/own/libiomp5.so", "a.py:1"), ("/own/libomp-1a.so.5", "b.py:2"), ("/own/module.so", "c.py:3"))
    found = second_openmp.second_runtime(tmp_path, f"/lib/libjemalloc.so.2:{FIRST}")
    assert found == SecondOpenMP(FIRST, "/own/libomp-1a.so.5", "b.py:2")


@pytest.mark.parametrize("place", ["package", "package.libs", "package/lib"])
def test_so_is_one_that_a_package_brings(leave, tmp_path, place):
    module, runtime = tmp_path / "package/_module.so", tmp_path / place / "libomp-1a.so.5"
    module.parent.mkdir()
    runtime.parent.mkdir(exist_ok=True)
    runtime.touch()
    leave((str(module), "package/__init__.py:1"))
    found = second_openmp.second_runtime(tmp_path, FIRST)
    assert found is not None
    assert (found.where, found.second.endswith("/libomp-1a.so.5")) == ("package/__init__.py:1", True)


def test_nothing_is_said_without_a_second_runtime(leave, tmp_path):
    leave((FIRST, "a.py:1"), ("/own/libomptarget.so", "b.py:2"), ("/own/libgomp.so.1", "c.py:3"))
    assert second_openmp.second_runtime(tmp_path, FIRST) is None
    leave(("/own/libomp.so", "a.py:1"))
    assert second_openmp.second_runtime(tmp_path, FIRST) is not None
    assert second_openmp.second_runtime(tmp_path, "/lib/libjemalloc.so.2") is None  # the profile preloads none
    (tmp_path / "7.json").touch()  # it lived to its end
    assert second_openmp.second_runtime(tmp_path, FIRST) is None


@pytest.mark.parametrize("damaged", ["{", "[]", '{"pid": 7, "libraries": [1]}', '{"pid": "x", "libraries": []}'])
def test_a_damaged_list_is_left_out(tmp_path, damaged):
    (tmp_path / "libraries.7").write_text(damaged)
    assert second_openmp.second_runtime(tmp_path, FIRST) is None
