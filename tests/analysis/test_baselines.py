"""Whatever stands in a baseline's file, reading and comparing it ends well or with one line that says why not."""

from __future__ import annotations

import json

import pytest
from envkit.analysis import baselines
from envkit.analysis.baseline_diff import changes, differences, machine_pairs, obstacles
from envkit.common.errors import InputError
from envkit.rendering import text_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nvidia import accelerator
from tests.sessions import session
from tests.simulated_worker import inspection

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return baselines.from_record(session(tmp_path_factory.mktemp("run")), "old")


def places(value, path=()):
    """The path of everything in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def planted(document, path, value):
    """A copy of ``document`` with ``value`` at ``path``, signed."""
    copy = json.loads(json.dumps(document))
    *way, last = path
    inner = copy
    for key in way:
        inner = inner[key]
    inner[last] = value
    return {**copy, "digest": baselines.digest(copy)}


def compared(saved, file):
    """Compare a file with the baseline that it was made from; returns why it is refused, or None."""
    try:
        read = baselines.read(file)
        if not obstacles(saved, read):
            changes(saved, read, 0.05)
        differences(saved, read)
        differences(read, saved)
    except InputError as error:
        return text_of(error)
    return None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), value=JSON)
def test_any_value_anywhere(saved, tmp_path, data, value):
    path = data.draw(st.sampled_from([place for place in places(saved.document) if place]))
    file = tmp_path / "old.json"
    file.write_text(json.dumps(planted(saved.document, path, value)))
    message = compared(saved, file)
    assert message is None or (message.startswith(f"{file}: ") and len(message.splitlines()) == 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_content(tmp_path, content):
    file = tmp_path / "old.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as error:
        baselines.read(file)
    assert text_of(error.value).startswith(f"{file}: ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(variables=st.lists(st.text(), max_size=4))
def test_what_is_written_is_read_again(saved, tmp_path, variables):
    document = {**saved.document, "allowed_variables": variables}
    document["digest"] = baselines.digest(document)
    file = tmp_path / "old.json"
    baselines.write(baselines.Baseline(document, "here"), file, replace=True)
    assert baselines.read(file).document == document


@pytest.mark.parametrize(
    ("then", "now", "unlike"),
    [
        (accelerator(1), accelerator(1), []),
        (accelerator(2), accelerator(1), ["the GPUs"]),
        (accelerator(1), None, ["the GPUs"]),
        (None, accelerator(1), []),  # which nothing was trained on
    ],
)
def test_gpus_must_be_the_same_where_there_were_some(then, now, unlike):
    old, new = (inspection([], {"accelerator": seen} if seen else {}) for seen in (then, now))
    assert [name for name, *both in machine_pairs(old, new) if both[0] != both[1]] == unlike
