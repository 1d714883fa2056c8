from __future__ import annotations

from functools import cache

import kubernetes_validate
import pytest
import yaml
from envkit.profiles.formats.kubernetes import kubernetes
from hypothesis import given
from kubernetes_validate import utils

from tests.profiles.formats.resolving import VALUES, resolved

VERSION = kubernetes_validate.latest_version()


@pytest.fixture(scope="module", autouse=True)
def schemas_are_read_once():
    """Each validation would else read megabytes of JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield


def pod(**fields):
    """The Pod, after Kubernetes' own schema has found nothing wrong with it."""
    document = yaml.safe_load(kubernetes(resolved(**fields)))
    kubernetes_validate.validate(document, VERSION, strict=True)
    return document


def expanded(text):
    """What a container gets of a text: ``$`` for ``$$``. ``$(NAME)`` would be replaced, and must not be there."""
    result, at = "", 0
    while at < len(text):
        if text.startswith("$$", at):
            at += 1
        else:
            assert not text.startswith("$(", at), text
        result += text[at]
        at += 1
    return result


def variables_of(document):
    (container,) = document["spec"]["containers"]
    return {entry["name"]: expanded(entry["value"]) for entry in container.get("env", ())}


@given(VALUES)
def test_any_value_is_valid_and_arrives(variables):
    assert variables_of(pod(variables=variables)) == variables


# Read as a number, a boolean, nothing, a date or an alias by one YAML reader or another.
@pytest.mark.parametrize(
    "value", ["1", "1e3", "0x10", "0o7", "010", "1:30", "on", "y", "null", "~", "2026-11-21", "*a", "- a"]
)
def test_every_value_is_a_text_for_every_reader(value):
    assert f'value: "{value}"' in kubernetes(resolved({"X": value}))
    assert variables_of(pod(variables={"X": value})) == {"X": value}


def test_the_container_has_image_command_and_cpus():
    (container,) = pod(variables={"A": "1"}, prefix=["numactl", "$(X)"], image="me/kit:1")["spec"]["containers"]
    assert container["image"] == "me/kit:1"
    assert [expanded(word) for word in container["command"]] == ["numactl", "$(X)", "python", "train.py"]
    assert container["resources"] == {"limits": {"cpu": "4"}}


def test_the_container_is_allowed_what_its_prefix_needs():
    of = {prefix: pod(prefix=[prefix])["spec"]["containers"][0].get("securityContext") for prefix in ("numactl", "env")}
    assert of == {"numactl": {"capabilities": {"add": ["SYS_NICE"]}}, "env": None}
    assert "# for numactl, where Pods have a seccomp filter" in kubernetes(resolved(prefix=["numactl"]))


def test_the_container_has_as_many_gpus_as_the_profile_needs():
    (container,) = pod(gpus=2)["spec"]["containers"]
    assert container["resources"] == {"limits": {"cpu": "4", "nvidia.com/gpu": "2"}}


def test_without_variables_or_an_image_of_its_own():
    document = pod(profile="baseline")
    assert variables_of(document) == {}
    assert document["spec"]["containers"][0]["image"] == "your-image"


@pytest.mark.parametrize(
    ("profile", "name"),
    [("My_Host.local-tuned", "envkit-my-host-local-tuned"), ("_x_", "envkit-x"), ("x" * 90, "envkit-" + "x" * 56)],
)
def test_the_name_is_one_that_kubernetes_takes(profile, name):
    assert pod(profile=profile)["metadata"]["name"] == name


def test_the_first_line_says_what_it_is_for():
    first, second = kubernetes(resolved(numerics="may-differ")).splitlines()[:2]
    assert first == "# profile mine, resolved for 4 usable CPUs on 2 cores of here (a CPU); local python"
    assert second == "# numerics may differ from those without this profile"
