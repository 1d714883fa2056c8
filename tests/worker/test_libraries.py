from __future__ import annotations

import hashlib
import importlib
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from envkit.profiles import profile
from envkit.worker import libraries
from envkit.worker.evidence.running import exporting, settings, shown
from envkit.worker.libraries import LIBRARIES, ONE_RUNS, is_alone, locate, readers, search_folders


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders ``one`` and ``two``, filled with the files given by their paths."""

    def make(*paths):
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        for path in paths:
            (tmp_path / path).write_text(path)
        return [tmp_path / "one", tmp_path / "two"]

    monkeypatch.setattr(libraries, "_is_there", lambda file: True)
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
    expected = {"path": str(tmp_path / found), "sha256": hashlib.sha256(found.encode()).hexdigest(), "others": [],
                "version": None}  # fmt: skip
    assert list(locate(folders(*files)).values()) == [expected]


def test_the_version_that_a_file_tells(folders, tmp_path):
    files = folders("one/libjemalloc.so.2")
    (tmp_path / "one/libjemalloc.so.2").write_bytes(
        b"\0" + b"5.3.1-0-g" + b"81034ce1f1373e37dc865038e1bc8eeecf559ce8\0"
    )
    assert locate(files)["jemalloc"]["version"] == "5.3.1"


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


def test_one_that_needs_a_missing_file_is_left_out(folders, monkeypatch):
    here = folders("one/libmimalloc.so.3", "one/libmimalloc.so.2")
    monkeypatch.setattr(libraries, "_is_there", lambda file: file != "libatomic.so.1")
    assert locate(here).keys() == {"mimalloc-2"}


def test_a_file_is_there_if_the_loader_finds_it():
    assert libraries._is_there("libc.so.6")
    assert not libraries._is_there("libno-such-library.so.1")


def test_the_interpreters_own_folder_is_searched_first():
    assert search_folders()[0] == Path(sys.prefix) / "lib"


def test_what_pip_installs_for_one_user_and_what_an_environment_was_made_of_are_searched_next(monkeypatch):
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    monkeypatch.setattr("site.getuserbase", lambda: "/home/me/.local")
    monkeypatch.setattr("site.getusersitepackages", lambda: "/home/me/packages")
    monkeypatch.setattr(sys, "base_prefix", "/opt/conda")
    of_user = [Path("/home/me/.local/lib"), Path("/home/me/packages/cmeel.prefix/lib")]
    assert search_folders()[3:6] == [*of_user, Path("/opt/conda/lib")]
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)  # as in most virtual environments
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert search_folders()[3] == Path("/usr/local/lib")


def test_wheels_of_libraries_are_found_beside_the_packages_of_a_python_and_beside_the_kit():
    known = search_folders()
    kit = Path(libraries.__file__).resolve().parents[2]
    assert known.index(Path(sysconfig.get_path("purelib")) / "cmeel.prefix/lib") < known.index(Path("/usr/lib"))
    assert known[-2] == kit / "cmeel.prefix/lib"


def test_the_release_of_mimalloc_that_was_found_decides_which_library_it_is(folders, tmp_path):
    found = locate(folders("one/libmimalloc.so.2", "two/libmimalloc.so.3"))
    assert {name: one["path"] for name, one in found.items()} == {
        "mimalloc": str(tmp_path / "two/libmimalloc.so.3"), "mimalloc-2": str(tmp_path / "one/libmimalloc.so.2"),
    }  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_entry_is_complete(name):
    library = LIBRARIES[name]
    assert library.comes_with or library.packages
    assert library.aborts_beside == () or name in library.aborts_beside
    assert not library.profile or name in profile.load(library.profile).preload
    if library.kind in ONE_RUNS:
        assert library.shows[1]
        assert library.stems or library.files
    assert [one for one in LIBRARIES.values() if one.shows == library.shows and library.shows[0]] in ([], [library])


@pytest.mark.parametrize("name", [name for name, library in LIBRARIES.items() if library.settings == "malloc:glibc"])
def test_settings_are_asked_for_by_the_function_that_the_entry_names(name):
    assert "glibc.malloc.trim_threshold" in settings(name)


@pytest.mark.parametrize("library", [library for library in LIBRARIES.values() if library.settings])
def test_each_function_that_an_entry_names_is_there(library):
    module, _, function = library.settings.partition(":")
    assert callable(getattr(importlib.import_module(f"envkit.worker.evidence.{module}"), function))


def test_a_library_under_another_name_is_recognised_by_what_it_exports(tmp_path):
    found = locate(search_folders()).get("intel-openmp") or pytest.skip("Intel's OpenMP runtime is not installed here")
    copy = Path(shutil.copy(found["path"], tmp_path / "libother.so"))
    assert exporting(str(copy), "openmp") == "intel-openmp"
    assert exporting(str(copy), "allocator") is None
    assert (shown("intel-openmp"), shown(None)) == ("intel", "unknown")


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("MALLOC_CONF", {"jemalloc": "any"}),
        ("MALLOC_ARENA_MAX", {"glibc": "any"}),
        # the name counts, and not how it begins
        ("MIMALLOC_PURGE_DELAY", dict.fromkeys(("mimalloc", "mimalloc-2"), ">=2.1.2")),
        ("GOMP_SPINCOUNT", {"gnu-openmp": "any"}),
        ("GOMP_STACKSIZE", dict.fromkeys(("gnu-openmp", "intel-openmp", "llvm-openmp"), "any")),
        ("PATH", {}),
    ],
)
def test_who_reads_a_variable(variable, found):
    assert readers(variable) == found


@pytest.mark.parametrize(
    ("path", "alone"),
    [
        ("/venv/lib/libiomp5.so", True),
        ("/usr/lib/libomp.so.5", True),
        ("/torch/lib/libgomp-a34b3233.so.1", False),
        ("/usr/lib/libomptarget.so", False),
    ],
)
def test_which_runtimes_end_a_process_that_has_another(path, alone):
    assert is_alone(path) is alone
