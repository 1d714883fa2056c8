"""What is recorded of a worker has the names of the caller's variables, and not their values."""

from __future__ import annotations

import pytest
from envkit.bench.messages import WorkerReported
from envkit.bench.private_values import hidden
from envkit.bench.problem_messages import NoDocument, WarmingUp, Written, WroteOutside
from envkit.bench.problems import restored
from envkit.bench.record_messages import CALLERS
from envkit.engines.messages import NotStarted
from envkit.worker.messages import TorchrunFailed

SECRET = "s3cr3t-value"


def evidence(**sensitive):
    return {"evidence": {"variables": {"sensitive": sensitive, "preloaded": {}}}}


@pytest.mark.parametrize(
    ("given", "kept", "inherited", "left"),
    [
        ({"OMP_NUM_THREADS": "4"}, {"OMP_NUM_THREADS": "4"}, {}, {}),  # however short
        ({"OMP_NUM_THREADS": "4"}, {"OMP_NUM_THREADS": "8"}, {}, {"OMP_NUM_THREADS": "4"}),  # the command's own
        ({"KMP_BLOCKTIME": "1"}, {"OMP_NUM_THREADS": "1"}, {}, {"KMP_BLOCKTIME": "1"}),  # a profile's
        ({"TORCH_HOME": "/big"}, {}, {"TORCH_HOME": "/big"}, {}),  # what says where things are
        ({"LD_PRELOAD": "a.so:t.so"}, {"LD_PRELOAD": "t.so"}, {}, {"LD_PRELOAD": "a.so"}),
        ({"LD_PRELOAD": "a.so:t.so:stdbuf.so"}, {"LD_PRELOAD": "t.so"}, {}, {"LD_PRELOAD": "a.so:stdbuf.so"}),
        (
            {"MALLOC_CONF": "lg_chunk:9,thp:always"},
            {"MALLOC_CONF": "lg_chunk:9"},
            {},
            {"MALLOC_CONF": "$MALLOC_CONF,thp:always"},
        ),
        ({"LD_PRELOAD": "t.so u.so"}, {"LD_PRELOAD": "t.so:u.so"}, {}, {}),
    ],
)
def test_of_variables_what_the_profile_or_the_command_sets_stays(given, kept, inherited, left):
    found = hidden(evidence(**given), kept, inherited)
    assert found["evidence"]["variables"]["sensitive"] == left


def test_so_it_is_of_each_process():
    document = {"other_processes": [evidence(OMP_NUM_THREADS="4")], "ranks": [evidence(OMP_NUM_THREADS="4")]}
    assert "4" not in str(hidden(document, {"OMP_NUM_THREADS": "4"}, {}))


def test_a_value_anywhere_in_a_text_is_replaced_by_the_name():
    document = {"stderr": f"key={SECRET}!", "n": 7, "x": [{f"at {SECRET}": (f"{SECRET}{SECRET}", 1.5, None)}]}
    assert hidden(document, {"TOKEN": SECRET}, {}) == {
        "stderr": "key=$TOKEN!", "n": 7, "x": [{"at $TOKEN": ["$TOKEN$TOKEN", 1.5, None]}],
    }  # fmt: skip


def test_the_longer_of_two_values_is_looked_for_first():
    kept = {"SHORT": SECRET, "LONG": f"{SECRET}-and-more"}
    assert hidden({"stderr": f"{SECRET}-and-more {SECRET}"}, kept, {}) == {"stderr": "$LONG $SHORT"}


def test_a_short_value_is_no_secret_in_a_text():
    assert hidden({"stderr": "1 of 1 is 1"}, {"OMP_NUM_THREADS": "1"}, {}) == {"stderr": "1 of 1 is 1"}


def test_a_setting_that_a_library_has_from_it_is_not_told_either():
    document = {"evidence": {"openmp": {"settings": {"OMP_NUM_THREADS": "4", "OMP_STACKSIZE": "4"}, "max_threads": 4}}}
    found = hidden(document, {"OMP_NUM_THREADS": "4"}, {})["evidence"]["openmp"]
    assert found == {"settings": {"OMP_NUM_THREADS": CALLERS, "OMP_STACKSIZE": "4"}, "max_threads": 4}


def test_libraries_that_the_user_preloads_are_named_so():
    document = {"evidence": {"variables": {"preloaded": {"/site/t.so": "mapped", "a.so": "mapped"}}}}
    found = hidden(document, {"LD_PRELOAD": "/site/t.so:/site/u.so"}, {})
    assert found["evidence"]["variables"]["preloaded"] == {"$LD_PRELOAD": "mapped", "a.so": "mapped"}


@pytest.mark.parametrize("key", ["variable OMP_NUM_THREADS", "variable OMP_NUM_THREADS (process 7: python)"])
def test_a_check_says_that_the_callers_value_was_expected(key):
    checks = [{"key": key, "expected": "4", "seen": "not set", "verified": True}]
    found = hidden({"checks": checks}, {"OMP_NUM_THREADS": "4"}, {})
    assert found["checks"] == [{**checks[0], "expected": CALLERS}]
    other = [{**checks[0], "key": "openmp.max_threads"}]
    assert hidden({"checks": other}, {"OMP_NUM_THREADS": "4"}, {})["checks"] == other


@pytest.mark.parametrize(
    ("printed", "left"),
    [
        (f"bad token {SECRET[:9]}…", "bad token $TOKEN…"),  # cut at its end
        (f"{SECRET[-8:]}-{SECRET}: no", "$TOKEN-$TOKEN: no"),  # cut at its beginning
        (f"{SECRET[:7]} is too little", f"{SECRET[:7]} is too little"),
        ("pin 9Zq7, not 9Zq71", "pin $PIN, not 9Zq71"),
        ("/usr/local/lib/x.so", "/usr/local/lib/x.so"),
        (r"'a line of it\n'", r"'$TWO\n'"),
    ],
)
def test_parts_of_values_in_what_a_program_printed(printed, left):
    kept = {"TOKEN": SECRET, "PIN": "9Zq7", "LD_LIBRARY_PATH": "/usr/local/cuda", "TWO": "a line of it\nand another"}
    assert hidden({"reason": printed, "stderr": printed}, kept, {}) == {"reason": left, "stderr": left}
    quoting, without = (
        WorkerReported(TorchrunFailed("RendezvousError", one), NotStarted(one)).to_json() for one in (printed, left)
    )
    assert hidden({"problem": quoting}, kept, {}) == {"problem": without}


def test_items_of_a_problems_fields_are_hidden_too():
    problem, left = (WroteOutside("/x", Written(1, 7, (f"at {one}", "b"))) for one in (SECRET, "$TOKEN"))
    assert restored(hidden({"problem": problem.to_json()}, {"TOKEN": SECRET}, {})["problem"]) == left


@pytest.mark.parametrize("value", ["bench.no-document", "no-document", "warning", "problem"])
def test_a_value_like_the_kits_own_words_does_not_make_a_problem_unreadable(value):
    problem = WarmingUp(NoDocument())
    found = hidden({"problem": problem.to_json()}, {"TOKEN": value, "problem": "x", "code": "y"}, {})
    assert restored(found["problem"]) == problem


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("HF_TOKEN", SECRET, "at $HF_TOKEN!"),
        ("wandb_api_key", SECRET, "at $wandb_api_key!"),
        ("PGPASSWORD", SECRET, "at $PGPASSWORD!"),
        ("MYSQL_PWD", SECRET, "at $MYSQL_PWD!"),
        ("AWS_SECRET_ACCESS_KEY", SECRET, "at $AWS_SECRET_ACCESS_KEY!"),
        ("TOKENIZERS_PARALLELISM", SECRET, None),
        ("MONKEY", SECRET, None),
        ("PWD", SECRET, None),
        ("HF_TOKEN", "EMPTY", None),
        ("SSH_KEY", "/home/me/.ssh/id", None),  # a path
        ("HTTPS_PROXY", f"https://jane:{SECRET}@proxy:3128", "at https://$HTTPS_PROXY@proxy:3128!"),
        ("DATABASE_URL", f"db://{SECRET}@host/x", "at db://$DATABASE_URL@host/x!"),
        ("ORIGIN", "ssh://git@example.org/x", None),
    ],
)
def test_secrets_that_workers_inherit_are_hidden_in_what_they_say(name, value, left):
    said, left = f"at {value}!", left or f"at {value}!"
    given = {"arm": value, "stderr": said, "evidence": {"x": [said]}, "problem": NotStarted(said).to_json()}
    found = hidden(given, {}, {name: value})
    assert found == {"arm": value, "stderr": left, "evidence": {"x": [left]}, "problem": NotStarted(left).to_json()}


def test_a_password_of_an_address_is_hidden_without_the_address():
    given = {"HTTPS_PROXY": f"https://jane:{SECRET}@proxy:3128"}
    assert (
        hidden({"stderr": f"user jane, password {SECRET}"}, {}, given)["stderr"] == "user jane, password $HTTPS_PROXY"
    )
