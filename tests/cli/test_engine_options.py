"""What is made of the options that choose an engine."""

from __future__ import annotations

import pytest
from envkit.cli import engine_options
from envkit.cli.parser import Parser


@pytest.mark.parametrize(
    ("option", "given", "taken"),
    [
        ("sif", "mine.sif", "HERE/mine.sif"),
        ("sif", "../mine.sif", "HERE/../mine.sif"),
        ("sif", "/images/mine.sif", "/images/mine.sif"),
        ("sqsh", "mine.sqsh", "HERE/mine.sqsh"),
        ("python", "bin/python", "HERE/bin/python"),
        ("python", "python3.11", "python3.11"),  # looked for in PATH
        ("image", "registry/envkit", "registry/envkit"),
    ],
)
def test_a_run_finds_its_files_when_it_is_resumed_from_elsewhere(tmp_path, monkeypatch, option, given, taken):
    monkeypatch.chdir(tmp_path)
    parser = Parser(prog="envkit x")
    engine_options.add(parser)
    found = engine_options.from_arguments(parser.parse_args([f"--{option}", given])).to_json()
    assert found == {option: taken.replace("HERE", str(tmp_path))}
