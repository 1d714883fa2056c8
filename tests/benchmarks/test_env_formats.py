from __future__ import annotations

from envkit.profiles.formats import FORMATS

from benchmarks import env_formats


def test_the_page_has_every_format(benchmark_script, write_profile, page_file):
    profile = write_profile("mine", "env:\n  SEEN: everywhere\n")
    assert env_formats.ABOUT.keys() == FORMATS.keys()
    # nothing is needed of an image, so none is needed either
    result = benchmark_script(env_formats, "--profile", profile, "--image", "", "--page", page_file)
    assert (result.returncode, result.stderr) == (0, ""), result
    text = page_file.read_text()
    for name in FORMATS:
        assert f"\n## {name}\n" in text
    assert text.count("everywhere") >= len(FORMATS)


def test_a_profile_that_is_not_there(benchmark_script, page_file):
    assert benchmark_script(env_formats, "--profile", "none", "--page", page_file).returncode == 2
    assert not page_file.exists()
