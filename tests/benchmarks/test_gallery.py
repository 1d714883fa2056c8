"""The gallery of trainings: its list, and scripts that stand alone; those that need more than torch are only read."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.common import yamlfile
from envkit.engines.base import PROJECT
from envkit.worker.user_command.losses import Losses, parse_losses
from envkit.worker.user_command.metric import parse
from envkit.worker.user_command.readings import Readings

GALLERY = PROJECT / "benchmarks/gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))
MODELS = yamlfile.read(GALLERY / "models.yaml", "the list of the gallery").data
# As docs/own-script.md has them.
TIME, LOSS = r"step \d+: ([0-9.]+) s", r"loss (\S+)"
TIMEOUT_S = 300


def imported(script: Path) -> set[str]:
    """The packages that a script imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(script.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += ["." * node.level + (node.module or "") for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_the_list_names_the_scripts_and_says_what_each_is() -> None:
    assert sorted(MODELS) == [script.stem for script in SCRIPTS]
    assert len(SCRIPTS) >= 12
    for name, model in MODELS.items():
        assert model.keys() == {"title", "kind", "steps", "packages"}, name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_imports_what_the_list_says_and_nothing_of_the_kit(script: Path) -> None:
    assert imported(script) - set(sys.stdlib_module_names) == set(MODELS[script.stem]["packages"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_has_a_seed_and_steps_and_prints_as_the_others_do(script: Path) -> None:
    text = script.read_text()
    assert "torch.manual_seed(" in text
    assert '"--steps"' in text
    (line,) = re.findall(r"print\((.*)\)", text)
    assert re.fullmatch(r'f"step \{step\}: \{.+:\.4f\} s, loss \{.+:\.4f\}", flush=True', line)


def test_what_the_scripts_import_is_locked() -> None:
    locked = (PROJECT / "images/gallery/requirements.lock").read_text()
    beside_torch = {package for model in MODELS.values() for package in model["packages"]} - {"torch"}
    assert {package for package in beside_torch if f"\n{package}==" not in locked} == set()


def test_what_every_image_has_is_locked_in_the_same_versions() -> None:
    def versions(lock: str) -> set[str]:
        return set(re.findall(r"^[a-z0-9-]+==[^\\]+", (PROJECT / lock).read_text(), re.MULTILINE))

    assert versions("images/cpu/requirements.lock") <= versions("images/gallery/requirements.lock")


def test_the_guide_lists_all_and_reads_their_lines() -> None:
    guide = (PROJECT / "docs/own-script.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", guide, re.MULTILINE)
    assert dict(rows) == {name: f"{model['title']}: {model['kind']}" for name, model in MODELS.items()}
    assert f"--loss-metric '{LOSS}'" in guide


@pytest.mark.parametrize("name", ["pinn", "tabular"])
def test_a_training_runs_from_anywhere_and_bench_can_read_it(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "train.py"
    copy.write_text((GALLERY / f"{name}.py").read_text())
    result = subprocess.run(
        [sys.executable, str(copy), "--steps", "2"], cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    times, losses = Readings(parse(TIME)), Losses(parse_losses(LOSS))
    for line in result.stdout.splitlines():
        times.take(line, at_s=0.0)
        losses.take(line)
    counted = times.split(warmup=1)[1]
    assert (len(counted), len(losses.beside(times, warmup=1, steps=1))) == (1, 1)
