from __future__ import annotations

import json

from envkit.profiles import profile


def test_every_profile_is_listed(cli):
    result = cli("profiles")
    assert (result.returncode, result.stderr) == (0, "")
    first_words = [line.split()[0] for line in result.stdout.splitlines() if not line.startswith(" ")]
    known = [*profile.names(), *profile.local_names()]
    assert [word for word in first_words if word in known] == known
    assert "Nothing set" in result.stdout


def test_json(cli):
    listed = json.loads(cli("profiles", "--json").stdout)
    assert [one["name"] for one in listed] == [*profile.names(), *profile.local_names()]
    first = {"name": "baseline", "title": "Nothing set", "preload": [], "numerics": "same", "does_not_apply": None}
    assert listed[0] == first
