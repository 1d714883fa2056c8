from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from envkit.worker.libraries import locate, search_folders


@pytest.fixture
def folders(tmp_path):
    """Folders ``one`` and ``two``, filled with the files given by their paths."""

    def make(*paths):
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        for path in paths:
            (tmp_path / path).write_text(path)
        return [tmp_path / "one", tmp_path / "two"]

    return make


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["two/libjemalloc.so.2"], "two/libjemalloc.so.2"),
        # the preferred file name comes before the order of folders
        (["one/libtcmalloc_minimal.so.4", "two/libtcmalloc.so.4"], "two/libtcmalloc.so.4"),
        (["one/libtcmalloc_minimal.so.4"], "one/libtcmalloc_minimal.so.4"),
        (["one/libmimalloc.so.3"], "one/libmimalloc.so.3"),
    ],
)
def test_the_first_that_is_preferred(folders, tmp_path, files, found):
    expected = {"path": str(tmp_path / found), "sha256": hashlib.sha256(found.encode()).hexdigest(), "others": []}
    assert list(locate(folders(*files)).values()) == [expected]


def test_another_version_further_down_is_named(folders, tmp_path):
    found = locate(folders("one/libjemalloc.so.2", "two/libjemalloc.so.2"))["jemalloc"]
    assert found["path"] == str(tmp_path / "one/libjemalloc.so.2")
    assert found["others"] == [str(tmp_path / "two/libjemalloc.so.2")]


def test_the_same_content_twice_is_one_version(folders, tmp_path):
    found = folders("one/libjemalloc.so.2", "two/libjemalloc.so.2")
    (tmp_path / "two/libjemalloc.so.2").write_text("one/libjemalloc.so.2")
    assert locate(found)["jemalloc"]["others"] == []


def test_llvms_library_is_not_intels_for_a_link_of_that_name(folders, tmp_path):
    searched = folders("one/libomp.so.5", "two/libiomp5.so")
    (tmp_path / "one/libiomp5.so").symlink_to("libomp.so.5")
    assert locate(searched)["intel-openmp"]["path"] == str(tmp_path / "two/libiomp5.so")
    (tmp_path / "two/libiomp5.so").unlink()
    assert locate([tmp_path / "one"]).keys() == {"llvm-openmp"}


def test_what_is_not_there_is_left_out(folders):
    assert locate(folders("one/libother.so")) == {}


def test_the_interpreters_own_folder_is_searched_first():
    assert search_folders()[0] == Path(sys.prefix) / "lib"


def test_what_pip_installs_for_one_user_and_what_an_environment_was_made_of_are_searched_next(monkeypatch):
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    monkeypatch.setattr("site.getuserbase", lambda: "/home/me/.local")
    monkeypatch.setattr(sys, "base_prefix", "/opt/conda")
    assert search_folders()[2:4] == [Path("/home/me/.local/lib"), Path("/opt/conda/lib")]
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)  # as in most virtual environments
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert search_folders()[2] == Path("/usr/local/lib")
