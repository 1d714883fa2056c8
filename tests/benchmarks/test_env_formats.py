from __future__ import annotations

from benchmarks import env_formats
from runner.profiles.formats import FORMATS


def test_the_page_has_every_format(benchmark_script, write_profile, tmp_path):
    profile, written = write_profile("mine", "env:\n  SEEN: everywhere\n"), tmp_path / "page.md"
    assert env_formats.ABOUT.keys() == FORMATS.keys()
    # nothing is needed of an image, so none is needed either
    result = benchmark_script(env_formats, "--profile", profile, "--image", "", "--page", written)
    assert (result.returncode, result.stderr) == (0, ""), result
    text = written.read_text()
    for name in FORMATS:
        assert f"\n## {name}\n" in text
    assert text.count("everywhere") >= len(FORMATS)


def test_a_profile_that_is_not_there(benchmark_script, tmp_path):
    result = benchmark_script(env_formats, "--profile", "none", "--page", tmp_path / "page.md")
    assert result.returncode == 2
    assert not (tmp_path / "page.md").exists()
