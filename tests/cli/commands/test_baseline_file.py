"""``envkit baseline``: finding and reading the files, telling two of them apart, listing them."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests.cli.commands.conftest import words
from tests.conftest import PROJECT
from tests.sessions import BLOCKS, change_inspection, signed, verdicts

KERNEL = {"digest": "f" * 64}


def test_a_missing_baseline_and_one_that_is_nearly_called_so(save, refused, folder):
    message = refused("baseline", "check", "old", "--folder", folder)
    assert message == (
        f"envkit: no baseline 'old' in {folder}; the folder has no baselines; "
        "save one with: envkit baseline save old --from DIR"
    )
    save("cnn-epyc")
    message = refused("baseline", "check", "cnn-epic", "--folder", folder)
    assert f"no baseline 'cnn-epic' in {folder} (did you mean 'cnn-epyc'?); choose one of: cnn-epyc;" in message
    assert "x.json: no such file" in refused("baseline", "diff", "x.json", "cnn-epyc", "--folder", folder)


def test_a_file_can_be_named_instead(save, cli, tmp_path):
    path = save()
    moved = path.rename(tmp_path / "elsewhere.json")
    result = cli("baseline", "diff", moved, moved, cwd=tmp_path).ended(0)
    assert "elsewhere.json: " in result.stdout.replace("\n          ", "")


def rewritten(path, **fields):
    """Change keys of a baseline and keep its digest, as an editor would."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_baseline_that_was_edited_is_refused(save, check_refused, folder):
    path = save()
    document = json.loads(path.read_text())
    document["arms"]["mine"]["step_s"][3] *= 0.9
    rewritten(path, arms=document["arms"])
    assert check_refused(folder) == (
        f"envkit: {path}: was edited: its digest does not match its content; "
        "restore the file, or save it again: envkit baseline save NAME --from DIR --replace"
    )


def test_another_order_or_layout_of_the_same_content_is_no_edit(save, check):
    path = save()
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items())), indent=8))
    assert check().returncode == 0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"schema": "one"}, "is not a baseline (it has no 'schema'); give a file of envkit baseline save"),
        ({"name": 3}, "'name' must be a text, not 3; restore the file"),
        (
            {"reference_kernel": {**KERNEL, "seconds": [1, 2, -3, 4, 5, 6]}},
            "'reference_kernel.seconds.2' must be more than 0, not -3",
        ),
        ({"reference_kernel": {**KERNEL, "seconds": [1, 2, 3, 4, 5, 6]}}, "arms.baseline.step_s: must hold 6, one"),
        ({"digests": {"code": "x"}}, "'digests.code' can't be 'x'"),
        ({"digests": {}}, "'digests' is empty"),
        ({"arms": {}}, "study.arms[0].name: there is no 'baseline' further on"),
        ({"engines": {}}, "study.arms[0].engine: there is no 'local' further on"),
    ],
)
def test_a_file_that_does_not_fit_the_schema(save, check_refused, folder, fields, said):
    path = save()
    rewritten(path, **fields)
    assert check_refused(folder).startswith(f"envkit: {path}: {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not valid JSON (Expecting value"),
        (b'{"schema": NaN}', "is not valid JSON (NaN)"),
        (b"\xff\xfe", "is not valid JSON ("),
        (b"[" * 100_000, "is not valid JSON ("),
        (b"[1]", "is not a baseline (it has no 'schema')"),
    ],
)
def test_a_file_that_is_no_baseline(check_refused, folder, content, said):
    folder.mkdir()
    (folder / "old.json").write_bytes(content)
    assert check_refused(folder).startswith(f"envkit: {folder}/old.json: {said}")


def with_unknown_keys(document):
    document["moon_phase"] = "full"
    document["study"]["colour"] = ["red"]
    document["study"]["arms"][0]["mood"] = None
    document["arms"]["mine"]["watts"] = [1.5]
    document["engines"]["local"]["inspection"]["fingerprint"]["numa_distances"] = {"0": 10}


def test_unknown_keys_are_ignored(save, check):
    path = save()
    signed(path, with_unknown_keys)
    result = check()
    assert (result.returncode, len(verdicts(result))) == (0, 2)


def test_the_published_schema_is_valid_and_describes_what_is_written(save):
    document = json.loads(save().read_text())
    schema = json.loads((PROJECT / "runner/envkit/analysis/schemas/baseline.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert schema["properties"].keys() == document.keys()
    for key in schema["required"]:
        with pytest.raises(ValidationError, match=f"'{key}' is a required property"):
            Draft202012Validator(schema).validate({name: document[name] for name in document if name != key})


# --- diff and list ---


def test_diff_says_what_changed_beside_the_speed(save, diff):
    def change(run):
        run["engines"]["local"]["inspection"]["fingerprint"] |= {"kernel": "6.2.0", "governor": "powersave"}
        run["engines"]["local"]["inspection"]["packages"]["torch"] = "2.14.0"
        run["engines"]["local"]["inspection"]["libraries"]["jemalloc"]["sha256"] = "1" * 64
        run["environments"]["mine"]["variables"] = {"UV_THREADPOOL_SIZE": "3"}
        run["environments"]["mine"]["prefix"] = ["numactl", "--localalloc"]

    save()
    save("new", slower={"mine": 1.2}, seed=2, change=change)
    result = diff()
    assert result.returncode == 0  # it judges nothing
    table = [re.split(r"  +", line.strip()) for line in result.stdout.split("differs")[1].splitlines()[1:]]
    assert table == [
        ["package torch", "2.13.0", "2.14.0"],
        ["kernel", "6.1.0", "6.2.0"],
        ["library jemalloc", "000000000000…", "111111111111…"],
        ["governor", "-", "powersave"],
        ["mine: UV_THREADPOOL_SIZE", "-", "3"],
        ["mine: prefix", "-", "numactl --localalloc"],
    ]
    assert re.search(r"^mine .* 0\.8[34]x  0\.8\d to 0\.8\d$", result.stdout, re.MULTILINE)
    document = json.loads(diff("--json").stdout)
    assert {"what": "kernel", "old": "6.1.0", "new": "6.2.0"} in document["differences"]
    assert document["speed"]["arms"][1]["verdict"] == "regression"


def test_diff_of_two_machines_shows_the_environments_and_no_speed(save, diff):
    save()
    save("new", change=change_inspection("fingerprint", cpu_model="Another CPU"))
    result = diff().ended(0)
    why = "NOT COMPARED the CPU was Simulated CPU (model 1) and is now Another CPU (model 1)"
    assert why in words(result.stdout)
    assert re.search(r"^cpu model +Simulated CPU +Another CPU$", result.stdout, re.MULTILINE)
    assert "ms/step" not in result.stdout
    document = json.loads(diff("--json").stdout)
    assert (document["speed"], document["regression"]) == (None, False)
    assert document["not_compared"] == [why.removeprefix("NOT COMPARED ")]


def test_list(save, cli, folder):
    assert f"no baselines in {folder}; save one with" in cli("baseline", "list", "--folder", folder).stdout
    save("cnn")
    listed = cli("baseline", "list", "--folder", folder).stdout
    assert re.search(rf"^cnn +2026-\S+ \S+ UTC +{BLOCKS} +baseline, mine +Simulated CPU, 4 CPUs$", listed, re.MULTILINE)
    document = json.loads(cli("baseline", "list", "--folder", folder, "--json").stdout)
    assert [one["name"] for one in document] == ["cnn"]
