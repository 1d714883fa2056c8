"""What was resolved once is used again only while everything that it was made from is the same."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from envkit.cli.execution import environment_cache
from envkit.worker import gpus

ENVIRONMENT = {"profile": "mine", "variables": {"A": "1"}, "prefix": ["tool", "-x"]}
CODE = Path(environment_cache.__file__).parents[2]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Something of everything that an environment depends on, and one that is kept for it."""
    for folder in ("libraries", "packages", "commands"):
        (tmp_path / folder).mkdir()
    code = tmp_path / "code"
    for folder in environment_cache.CODE_FOLDERS:
        (code / folder).mkdir(exist_ok=True)
        name = "math.yaml" if folder == "profiles/variables" else "__init__.py"
        shutil.copy(CODE / folder / name, code / folder)
    library, command = tmp_path / "libraries/libx.so", tmp_path / "commands/tool"
    for file, text in ((tmp_path / "mine.yaml", "a"), (tmp_path / "parent.yaml", "b"), (library, ""), (command, "")):
        file.write_text(text)
    command.chmod(0o755)
    python = tmp_path / "python"
    shutil.copy(sys.executable, python)
    monkeypatch.setattr(environment_cache, "CODE", code)
    monkeypatch.setattr(environment_cache, "SETTLED_NS", 0)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(
        folder=tmp_path, code=code, preload=library, command=command, python=python, profile="mine.yaml"
    )


def asked(place, allow_unknown=False):
    return environment_cache.question(place.profile, environment_cache.interpreter(str(place.python)), allow_unknown)


def keep(place):
    files = [place.folder / name for name in ("mine.yaml", "nearer.yaml", "parent.yaml")]
    folders = [str(place.folder / name) for name in ("libraries", "packages", "later")]
    environment = {**ENVIRONMENT, "preload": {"x": str(place.preload)}}
    environment_cache.Observed(asked(place), files).keep(environment, folders, local=True)
    return environment


def rewritten(path, text):
    """Another content, with the same size and time."""
    about = path.stat()
    assert len(text) == about.st_size
    path.write_text(text)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def later(path):
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


CHANGES = {
    "the profile": lambda place, patch: rewritten(place.folder / "mine.yaml", "c"),
    "what it extends": lambda place, patch: rewritten(place.folder / "parent.yaml", "c"),
    "a profile that is looked for first": lambda place, patch: (place.folder / "nearer.yaml").write_text(""),
    "the profile is gone": lambda place, patch: (place.folder / "mine.yaml").unlink(),
    "the version": lambda place, patch: patch.setattr(environment_cache, "__version__", "9"),
    "the code": lambda place, patch: later(place.code / "__init__.py"),
    "the catalogue": lambda place, patch: later(place.code / "profiles/variables/math.yaml"),
    "a new module": lambda place, patch: (place.code / "worker/new.py").write_text(""),
    "the interpreter": lambda place, patch: later(place.python),
    "another interpreter": lambda place, patch: setattr(place, "python", Path(sys.executable)),
    "the CPUs that it may use": lambda place, patch: patch.setattr(os, "sched_getaffinity", lambda pid: {1000}),
    "the CPU quota": lambda place, patch: patch.setattr(environment_cache, "cpu_quota", lambda: 0.5),
    "the machine": lambda place, patch: _other_uname(patch, nodename="other"),
    "the kernel": lambda place, patch: _other_uname(patch, release="9.9"),
    "a boot": lambda place, patch: _replace_text(patch, "boot_id"),
    "a CPU that was taken away": lambda place, patch: _replace_text(patch, "cpu/online"),
    "a library that was installed": lambda place, patch: (place.folder / "libraries/liby.so").write_text(""),
    "a package": lambda place, patch: (place.folder / "packages/torch-3.dist-info").mkdir(),
    "a folder that is new": lambda place, patch: (place.folder / "later").mkdir(),
    "a library that leads nowhere": lambda place, patch: _dangling(place.preload),
    "the prefix's command": lambda place, patch: place.command.chmod(0o644),
    "where packages are found": lambda place, patch: patch.setenv("PYTHONPATH", "/elsewhere"),
    "which GPUs are meant": lambda place, patch: patch.setenv("CUDA_VISIBLE_DEVICES", "1"),
    "how GPUs are counted": lambda place, patch: patch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
    "whose it is": lambda place, patch: patch.setattr(os, "geteuid", lambda: 12345),
    "a file that is damaged": lambda place, patch: environment_cache._path(asked(place)).write_text('{"asked": {}'),
    "a file of another kind": lambda place, patch: environment_cache._path(asked(place)).write_text("[]"),
}


def _other_uname(patch, **fields):
    real = os.uname()
    uname = SimpleNamespace(**{"nodename": real.nodename, "release": real.release, **fields})
    patch.setattr(os, "uname", lambda: uname)


def _replace_text(patch, name):
    real = environment_cache._text
    patch.setattr(environment_cache, "_text", lambda path: "other" if str(path).endswith(name) else real(path))


def _dangling(library):
    """A link whose target was removed: its own folder is as it was."""
    folder = library.parent.stat()
    library.unlink()
    library.symlink_to("nowhere")
    os.utime(library.parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))


def test_it_is_used_again(place):
    assert environment_cache.answer(asked(place)) is None
    environment = keep(place)
    assert environment_cache.answer(asked(place)) == environment
    # under another name of the same file too, but not from a folder where the name means another file
    place.profile = str(place.folder / "mine.yaml")
    assert environment_cache.answer(asked(place)) == environment


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_not_used_when_something_has_changed(place, monkeypatch, change):
    keep(place)
    assert environment_cache.answer(asked(place)) is not None
    CHANGES[change](place, monkeypatch)
    assert environment_cache.answer(asked(place)) is None


def test_the_variables_that_say_which_gpus_are_meant():
    assert environment_cache.CHOOSING == gpus.CHOOSING


def test_each_question_has_an_answer_of_its_own(place, monkeypatch):
    keep(place)
    assert environment_cache.answer(asked(place, allow_unknown=True)) is None
    (place.folder / "elsewhere").mkdir()
    monkeypatch.chdir(place.folder / "elsewhere")
    assert environment_cache.answer(asked(place)) is None


def test_an_interpreter_beside_you_is_another_one_elsewhere(place, monkeypatch):
    """Those of virtual environments are links to one file."""
    place.profile = str(place.folder / "mine.yaml")
    place.python = "./python"
    keep(place)
    assert environment_cache.answer(asked(place)) is not None
    (place.folder / "elsewhere").mkdir()
    (place.folder / "elsewhere/python").symlink_to(place.folder / "python")
    monkeypatch.chdir(place.folder / "elsewhere")
    assert environment_cache.answer(asked(place)) is None


def test_two_questions_with_the_same_name_do_not_answer_each_other(place, monkeypatch):
    path = environment_cache._path(asked(place))
    monkeypatch.setattr(environment_cache, "_path", lambda question: path)
    keep(place)
    assert environment_cache.answer(asked(place, allow_unknown=True)) is None


def test_what_changes_while_it_is_made_is_not_kept(place):
    observed = environment_cache.Observed(asked(place), [place.folder / "mine.yaml"])
    rewritten(place.folder / "mine.yaml", "c")
    observed.keep({**ENVIRONMENT, "preload": {}}, [], local=True)
    assert environment_cache.answer(asked(place)) is None


def test_what_has_just_changed_is_not_kept(place, monkeypatch):
    """It might change again without getting another time."""
    monkeypatch.setattr(environment_cache, "SETTLED_NS", 3600 * 10**9)
    keep(place)
    assert environment_cache.answer(asked(place)) is None


def test_in_a_container_neither_libraries_nor_commands_are_looked_for_outside(place):
    environment = {**ENVIRONMENT, "preload": {"x": "/only/inside.so"}, "prefix": ["only-inside"]}
    environment_cache.Observed(asked(place), [place.folder / "mine.yaml"]).keep(environment, [], local=False)
    assert environment_cache.answer(asked(place)) == environment
