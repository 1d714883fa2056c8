from __future__ import annotations

import hashlib

import numpy
from envkit.worker import people


def test_the_seed_decides_everything():
    one, again, other = (people.draw(3, seed) for seed in (1, 1, 2))
    for drawn, same in zip(one, again, strict=True):
        assert numpy.array_equal(drawn, same)
    assert not numpy.array_equal(one[0], other[0])
    # the first pictures of a larger set are those of a smaller one
    assert numpy.array_equal(people.draw(5, 1)[0][:3], one[0])


def test_shapes_and_classes():
    pictures, masks = people.draw(40, 7)
    assert (pictures.shape, pictures.dtype) == ((40, 3, people.SIZE, people.SIZE), numpy.uint8)
    assert (masks.shape, masks.dtype) == ((40, people.SIZE, people.SIZE), numpy.uint8)
    assert set(numpy.unique(masks)) == {0, 1}
    shares = masks.mean(axis=(1, 2))
    assert 0.05 < shares.mean() < 0.4  # a person is neither hard to find nor all there is
    assert (shares > 0).mean() > 0.9
    assert pictures.std() > 30


def test_a_person_is_one_piece_of_several_colours():
    """Where there is one, its pixels are connected, and are not told by their colour alone."""
    pictures, masks = people.draw(20, 11)
    for picture, mask in zip(pictures, masks, strict=True):
        if mask.sum() > 100:
            assert len(numpy.unique(picture[0][mask == 1] // 32)) > 1


def test_the_pictures_are_the_same_everywhere():
    digest = hashlib.sha256(b"".join(drawn.tobytes() for drawn in people.draw(8, 1))).hexdigest()
    assert digest == "e2a4adb10629f162764f60a5b7bec97a15aab109c1cb0ec406f7d2a852d59650"
