from __future__ import annotations

import shlex

import pytest
from envkit.profiles.formats.docker_run import dockerfile, options
from envkit.profiles.formats.messages import OtherFormats
from envkit.profiles.messages import NotExpressible
from hypothesis import given

from tests.profiles.formats.resolving import VALUES, resolved
from tests.refusals import refusal


@given(VALUES)
def test_the_options_have_every_value_whole(variables):
    words = shlex.split(options(resolved(variables, limits=("--cpus", "1.5"))))
    assert words[:2] == ["--cpus", "1.5"]
    assert words[2::2] == ["--env"] * len(variables)
    assert words[3::2] == [f"{name}={value}" for name, value in variables.items()]


def test_the_options_ask_for_the_gpus_that_the_profile_is_for():
    assert options(resolved({"A": "1"}, gpus=1, asking=("--gpus", "all"))) == "--gpus all --env A=1\n"


def test_a_dockerfile_says_how_its_image_gets_gpus():
    said = "# start the container with the machine's GPUs: docker run --gpus all"
    assert [said in dockerfile(resolved({"A": "1"}, gpus=gpus)).splitlines() for gpus in (0, 1)] == [False, True]


def test_numactl_is_allowed_to_place_memory():
    """Docker's default seccomp filter refuses it that otherwise."""
    bound = resolved({"A": "1"}, prefix=["/usr/bin/numactl", "-l"], limits=("--cpus", "2"))
    assert options(bound) == "--cap-add SYS_NICE --cpus 2 --env A=1\n"
    said = "# start the container so that /usr/bin/numactl may place memory: docker run --cap-add SYS_NICE"
    assert said in dockerfile(bound).splitlines()
    assert "SYS_NICE" not in dockerfile(resolved({"A": "1"}, prefix=["env", "X=1"]))


def test_instructions():
    variables = {"A": "1", "B": "a \"b\" $HOME \\n 'c' # d", "EMPTY": ""}
    lines = dockerfile(resolved(variables, prefix=["numactl", "-N", '"0"'])).splitlines()
    assert lines == [
        "# profile mine, resolved for 4 usable CPUs on 2 cores of here (a CPU); local python",
        "# start the container so that numactl may place memory: docker run --cap-add SYS_NICE",
        'ENV A="1"',
        'ENV B="a \\"b\\" \\$HOME \\\\n \'c\' # d"',
        'ENV EMPTY=""',
        "# an ENTRYPOINT clears the CMD of the base image: repeat it after this line",
        'ENTRYPOINT ["numactl", "-N", "\\"0\\""]',
    ]
    assert "ENTRYPOINT" not in dockerfile(resolved(variables))


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\x07"])
def test_an_instruction_is_one_line(value):
    found = refusal(dockerfile, resolved({"X": value}))
    assert isinstance(found, NotExpressible)
    assert (found.format, found.name, found.fix) == ("dockerfile", "X", OtherFormats(("docker",)))
