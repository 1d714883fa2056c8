from __future__ import annotations

import json

import pytest
from envkit.profiles.environment import Environment, clean
from envkit.worker.performance_variables import is_performance_variable

ENVIRONMENT = Environment("p", "A test", {"A": "1"}, {"jemalloc": "/lib/j.so"}, ("numactl", "-l"), {"x": 1}, "same")


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "TORCH_COMPILE", "PYTHONHASHSEED", "OPENBLAS_CORETYPE"])
def test_variables_that_can_change_the_outcome_are_removed(name):
    assert clean({name: "1", "HOME": "/root"}, keep=()) == ({"HOME": "/root"}, {name: "1"})


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "MY_OMP_THING", "http_proxy", "ENVKIT_PADDING"]
)
def test_other_variables_are_inherited(name):
    assert clean({name: "x"}, keep=()) == ({name: "x"}, {})
    assert not is_performance_variable(name)


def test_allowed_variables_are_inherited():
    caller = {"OMP_NUM_THREADS": "4", "OMP_PLACES": "cores"}
    assert clean(caller, keep=["OMP_PLACES", "KMP_UNSET"]) == ({"OMP_PLACES": "cores"}, {"OMP_NUM_THREADS": "4"})


def test_json_round_trip_is_equal():
    document = json.loads(json.dumps(ENVIRONMENT.to_json()))
    assert Environment.from_json(document) == ENVIRONMENT
