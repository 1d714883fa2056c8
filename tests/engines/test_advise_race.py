"""``envkit advise`` races real processes of a training with two optimizers, which saves checkpoints into its folder."""

from __future__ import annotations

import json
import sys

import pytest
from envkit.bench import race, record
from envkit.cli import racing
from envkit.cli.commands import advise as advise_command

SCRIPT = """
import pathlib, time, torch
generator, critic = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
first, second = (torch.optim.SGD(net.parameters(), 0.01) for net in (generator, critic))
assert not pathlib.Path("model.pt").exists(), "each start has a folder of its own"
for step in range(100_000):
    for net, optimizer in ((generator, first), (critic, second)):
        optimizer.zero_grad()
        net(torch.ones(8, 64)).mean().backward()
        optimizer.step()
    torch.save(generator.state_dict(), "model.pt")
    time.sleep(0.01 + 0.0001 * step)
"""


@pytest.fixture
def short(monkeypatch):
    """Have everything take seconds, with two candidates, and one block in the confirmation, which claims nothing."""
    monkeypatch.setattr(advise_command, "WATCH_S", 2.0)
    monkeypatch.setattr(advise_command, "candidates", lambda *of: ["glibc-retain", "mkl-native"])
    monkeypatch.setattr(racing, "BUDGET_S", 1.0)
    monkeypatch.setattr(race, "SAMPLE_S", 0.1)
    monkeypatch.setattr(race, "MOST_BLOCKS", race.LEAST_BLOCKS)
    confirmation = race.confirmation
    monkeypatch.setattr(race, "confirmation", lambda *of: confirmation(*of).with_stopping(blocks=1))


def test_two_optimizers_checkpoints_and_steps_that_get_longer(cli_in_process, short, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    out = tmp_path / "run"
    result = cli_in_process("advise", "--json", "--output", out, "--", sys.executable, "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert {racer["arm"] for racer in document["race"]} == {"glibc-retain", "mkl-native"}
    assert document["confirmation"]["ended"]
    assert not (tmp_path / "model.pt").exists()
    samples = [event for event in record.read(out / "race") if event["event"] == "sample"]
    assert {len(event["step_s"]) for event in samples} == {max(race.FEWEST_STEPS, len(samples[0]["step_s"]))}
