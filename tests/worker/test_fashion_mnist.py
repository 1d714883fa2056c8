from __future__ import annotations

import hashlib
import struct

import numpy
import pytest
from envkit.worker import fashion_mnist
from envkit.worker.errors import WorkerError
from envkit.worker.fashion_mnist import SHA256, load, mismatch
from envkit.worker.messages import NotPublished, UnusableFile


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of four small IDX files that pass for the published ones: 3 images of 2 x 2, and 3 labels."""
    for name in SHA256:
        shape = (3, 2, 2) if "images" in name else (3,)
        header = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
        content = header + bytes(range(numpy.prod(shape)))
        (tmp_path / name).write_bytes(content)
        monkeypatch.setitem(SHA256, name, hashlib.sha256(content).hexdigest())
    return tmp_path


def test_files_as_arrays(folder):
    arrays, _ = load(str(folder))
    assert list(arrays) == list(SHA256)
    assert arrays["train-images-idx3-ubyte"].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert arrays["t10k-labels-idx1-ubyte"].tolist() == [0, 1, 2]


def test_a_file_that_is_not_the_published_one_is_named(folder):
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\1\0\0\0\1\5")
    with pytest.raises(WorkerError) as caught:
        load(str(folder))
    assert isinstance(caught.value.message, UnusableFile)
    assert caught.value.message.file == f"{folder}/t10k-labels-idx1-ubyte"
    assert isinstance(caught.value.message.problem, NotPublished)


def test_mismatch_shows_both_digests(folder):
    name = next(iter(SHA256))
    assert mismatch(name, (folder / name).read_bytes()) is None
    digest = hashlib.sha256(b"x").hexdigest()
    assert mismatch(name, b"x") == NotPublished(digest[:12], SHA256[name][:12])


def test_synthetic_set_is_always_the_same_with_the_real_ones_shapes_and_every_class():
    arrays, digest = load(fashion_mnist.SYNTHETIC)
    assert load(fashion_mnist.SYNTHETIC)[1] == digest
    assert set(arrays["train-labels-idx1-ubyte"].tolist()) == set(range(10))
    assert {name: array.shape for name, array in arrays.items()} == {
        "train-images-idx3-ubyte": (60_000, 28, 28), "train-labels-idx1-ubyte": (60_000,),
        "t10k-images-idx3-ubyte": (10_000, 28, 28), "t10k-labels-idx1-ubyte": (10_000,),
    }  # fmt: skip
    assert {array.dtype for array in arrays.values()} == {numpy.dtype("uint8")}
