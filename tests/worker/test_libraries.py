from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from runner.worker.libraries import locate, search_folders


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
        (["two/libjemalloc.so.2", "one/libjemalloc.so.2"], "one/libjemalloc.so.2"),
        (["two/libjemalloc.so.2"], "two/libjemalloc.so.2"),
        # the preferred file name comes before the order of folders
        (["one/libtcmalloc_minimal.so.4", "two/libtcmalloc.so.4"], "two/libtcmalloc.so.4"),
        (["one/libtcmalloc_minimal.so.4"], "one/libtcmalloc_minimal.so.4"),
    ],
)
def test_the_first_that_is_preferred(folders, tmp_path, files, found):
    expected = {"path": str(tmp_path / found), "sha256": hashlib.sha256(found.encode()).hexdigest()}
    assert list(locate(folders(*files)).values()) == [expected]


def test_what_is_not_there_is_left_out(folders):
    assert locate(folders("one/libother.so")) == {}


def test_the_interpreters_own_folder_is_searched_first():
    assert search_folders()[0] == Path(sys.prefix) / "lib"
