"""The folder from which torch.compile executes code that it has made before."""

from __future__ import annotations

import pytest
from envkit.worker import compiler
from envkit.worker.errors import WorkerError
from envkit.worker.messages import ForeignCompilerCache
from envkit.worker.modes import Options
from envkit.worker.request import Train

from tests import second_user, worker_runs


@pytest.fixture(autouse=True)
def default_of_torch(monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)


@pytest.mark.slow
def test_it_is_the_one_that_torch_uses():
    pytest.importorskip("torch", "2.9")
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert str(compiler.default_cache()) == default_cache_dir()


def test_it_is_made_before_somebody_else_can_make_it():
    compiler.require_own_cache()
    assert compiler.default_cache().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775])
def test_the_users_own_is_taken_as_it_is(mode):
    """PyTorch made it, with whatever umask the user has; a group may be the user's own."""
    compiler.default_cache().mkdir()
    compiler.default_cache().chmod(mode)
    compiler.require_own_cache()


def refused():
    with pytest.raises(WorkerError) as caught:
        compiler.require_own_cache()
    return caught.value.message


def test_one_that_anybody_can_write_to_is_refused():
    compiler.default_cache().mkdir()
    compiler.default_cache().chmod(0o777)
    assert refused() == ForeignCompilerCache(str(compiler.default_cache()))


PLANT = "{'folder': Path.mkdir, 'link': lambda path: path.symlink_to(sys.argv[3])}[sys.argv[2]](Path(sys.argv[1]))"


@second_user.needs_root
@pytest.mark.parametrize("what", ["folder", "link"])
def test_what_another_user_has_made_first_is_refused(shared_folder, tmp_path, what, monkeypatch):
    second_user.said(PLANT, compiler.default_cache(), what, tmp_path)
    assert refused() == ForeignCompilerCache(str(compiler.default_cache()))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    compiler.require_own_cache()


@second_user.needs_root
def test_a_worker_that_is_to_compile_says_so(shared_folder):
    second_user.said(PLANT, compiler.default_cache(), "folder")
    result = worker_runs.of(Train("cnn", "synthetic", steps=1, options=Options(compile=True)))
    assert (result.returncode, ForeignCompilerCache.code in result.stdout) == (1, True), result.stderr
