"""Two images under one profile: what is measured, what is said of their differences, and what is refused."""

from __future__ import annotations

import json
import os

import pytest
from envkit.bench import record
from envkit.cli.image_options import short_names
from envkit.engines import container

from tests.cli.commands.conftest import words
from tests.records import conclude, samples
from tests.simulation import times

OLD, NEW = "envkit-cpu:old", "envkit-cpu:new"
IMAGES = ("--image", NEW, "--against-image", OLD)


def contents(**parts):
    return {"torch": {}, "python": {}, "conda": {}, "system": {}, **parts}


@pytest.fixture
def images(images_of):
    return images_of()


@pytest.fixture
def old(images):
    return images.add(OLD)


@pytest.fixture
def new(images):
    return images.add(NEW)


@pytest.fixture
def bench_images(cli, run_folder):
    """Measure the baseline in two images, six blocks."""

    def run(*options):
        fixed = ["--data", "synthetic", "--seed", 7, "--steps", 3, "--blocks", 6, "--output", run_folder]
        return cli("bench", "baseline", "--engine", "docker", *fixed, *(options or IMAGES))

    return run


# --- what is measured ---


def test_images_are_compared_in_one_interleaved_run(bench_images, cli, old, new, run_folder):
    new.worker("baseline", seconds=times(0.5))
    result = bench_images().ended(0)
    events = record.read(run_folder)
    assert [(arm["name"], arm["image"]) for arm in events[0]["study"]["arms"]] == [("old", OLD), ("new", NEW)]
    arms = [event["arm"] for event in samples(events)]
    blocks = [arms[start : start + 2] for start in range(0, 12, 2)]
    assert all(sorted(block) == ["new", "old"] for block in blocks)
    assert len(set(map(tuple, blocks))) > 1
    assert [len(image.starts()) for image in (old, new)] == [6, 6]
    # the reference kernel runs where the reference does
    started = [{start["name"] for start in image.starts(all=True)} for image in (old, new)]
    assert ["reference-kernel" in names for names in started] == [True, False]
    said = words(result.stdout)
    assert said.startswith("FASTER image new: 2.00x image old speed")
    assert f"Use envkit exec baseline --engine docker --image {NEW} -- python train.py" in said
    assert "image samples ms/step" in said
    listed = words(cli("history", run_folder).stdout)
    assert "baseline in new" in listed
    assert "against old" in listed


def test_a_slower_image_is_not_recommended(bench_images, old, new):
    new.worker("baseline", seconds=times(1.5))
    result = bench_images()
    assert "SLOWER  " in result.stdout
    assert "Next      keep old: it is faster here" in result.stdout


def test_the_default_image_can_be_held_against_another(bench_images, images, old, run_folder):
    images.add("envkit-cpu")
    assert bench_images("--against-image", OLD).returncode == 0
    assert [arm["name"] for arm in record.first(run_folder)["study"]["arms"]] == ["old", "latest"]


@pytest.mark.parametrize(("engine", "kind"), [("apptainer", "sif"), ("enroot", "sqsh")])
def test_files_of_images_are_compared_too(cli, tmp_path, images_of, run_folder, engine, kind):
    made = images_of(engine, kind)
    files = [tmp_path / f"envkit-cpu-{name}.{kind}" for name in ("old", "new")]
    for file in files:
        file.touch()
        made.add(str(file))
    options = ("--data", "synthetic", "--steps", 3, "--blocks", 1, "--output", run_folder)
    # as they are named from there: a run may be resumed from elsewhere
    named = (f"--{kind}", files[1].name, f"--against-{kind}", files[0].name)
    cli("bench", "baseline", "--engine", engine, *named, *options, cwd=tmp_path).ended(0)
    arms = record.first(run_folder)["study"]["arms"]
    assert [(arm["name"], arm["image"]) for arm in arms] == [("old", str(files[0])), ("new", str(files[1]))]


@pytest.mark.parametrize(
    ("first", "second", "kind", "names"),
    [
        ("kit:a", "kit:b", "image", ("a", "b")),
        ("kit", "kit:b", "image", ("latest", "b")),
        ("host:5000/kit", "host:5000/kit:b", "image", ("latest", "b")),
        ("kit:a", "other:a", "image", ("kit:a", "other:a")),
        ("kit@sha256:12", "kit@sha256:34", "image", ("kit@sha256:12", "kit@sha256:34")),
        ("/x/envkit-cpu-a.sif", "/y/b.sif", "sif", ("a", "b")),
        ("/x/a.sif", "/y/a.sif", "sif", ("/x/a.sif", "/y/a.sif")),
        ("/x/envkit-cpu-a.sqsh", "/y/b.sqsh", "sqsh", ("a", "b")),
        ("/x/.venv/bin/python", "/y/conda/bin/python3", "python", ("venv", "conda")),
        ("/x/.venv/bin/python", "/y/.venv/bin/python", "python", ("/x/.venv/bin/python", "/y/.venv/bin/python")),
    ],
)
def test_what_reports_call_images(first, second, kind, names):
    assert short_names(first, second, kind) == names


def test_images_are_compared_on_several_ranks_too(bench_images, old, new):
    old.worker("baseline on 2 ranks")
    new.worker("baseline on 2 ranks", seconds=times(0.5))
    result = bench_images(*IMAGES, "--nproc", 2).ended(0)
    said = words(result.stdout)
    assert said.startswith("FASTER image new on 2 ranks: 2.00x image old speed")
    assert "new's ranks communicate or wait" in said
    started = [(one["work"]["kind"], one["work"]["number"]) for image in (old, new) for one in image.starts()]
    assert started == [("ranks", 2)] * 12


def test_a_run_does_not_go_on_with_an_image_that_was_made_anew(bench_images, images, old, new, refused, run_folder):
    new.worker("baseline", does="exit", status=3)
    assert bench_images().returncode == 1
    images.add(NEW, digest=f"sha256:{'9' * 64}")
    assert "engine.digest was sha256:" in refused("bench", "--resume", run_folder)


# --- what differs ---


@pytest.fixture
def different(old, new):
    """Two images that differ in a Python package and its library, in PyTorch's build, and in a system's package."""
    for image, version, digit in ((old, "2025.3.3", "1"), (new, "2026.2.0", "2")):
        library = {"path": "/opt/kit/lib/libiomp5.so", "sha256": digit * 64, "others": []}
        image.inspection(
            packages={"torch": "2.13.0", "numpy": "2.4.6", "intel-openmp": version, "mkl": None},
            libraries={"intel-openmp": library},
            providers={"intel-openmp": f"PyPI wheel intel-openmp {version}"},
            contents=contents(
                torch={"git_version": digit * 8},
                python={"intel-openmp": version, "sympy": "1.14"},
                system={"libc6": "2.36-9", **({"libjemalloc2": "5.3.0-1"} if image is old else {})},
            ),
        )
    old.worker("baseline", evidence={"openmp": {"library": "/old/libgomp.so.1"}})
    new.worker("baseline", evidence={"openmp": {"library": "/new/libgomp.so.1"}})


EXPECTED = {
    "image": (OLD, NEW),
    "package intel-openmp": ("2025.3.3", "2026.2.0"),
    "library intel-openmp": (f"PyPI wheel intel-openmp 2025.3.3 ({'1' * 12}…)",
                             f"PyPI wheel intel-openmp 2026.2.0 ({'2' * 12}…)"),
    "torch's build: git_version": ("1" * 8, "2" * 8),
    "system package libjemalloc2": ("5.3.0-1", None),
    "observed openmp.library": ("/old/libgomp.so.1", "/new/libgomp.so.1"),
}  # fmt: skip


def test_what_differs_between_images_is_in_every_report(bench_images, different, cli, run_folder, tmp_path, undrawn):
    short = bench_images().stdout
    # of the record, later, the same
    assert cli("report", run_folder).stdout == short
    document = json.loads(cli("report", run_folder, "--json").stdout)
    assert document["reference"] == "old"
    found = {one["what"]: (one["reference"], one["image"]) for one in document["image_differences"]["new"]}
    digests = found.pop("image digest")
    assert all(digest.startswith("sha256:") for digest in digests)
    assert found == EXPECTED
    # what a timing depends on most comes first
    assert list(found)[-1] == "system package libjemalloc2"
    printed = cli("report", run_folder, "--details").stdout
    lines = [line.split() for line in printed.splitlines()]
    assert ["what", "differs", "old", "(reference)", "new"] in lines
    assert ["package", "intel-openmp", "2025.3.3", "2026.2.0"] in lines
    assert ["system", "package", "libjemalloc2", "5.3.0-1", "-"] in lines
    assert "sympy" not in printed  # which is the same in both
    assert cli("report", run_folder, "--html", tmp_path / "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert "FASTER  image new" in page or "image new: " in page
    assert '<th scope="row">package intel-openmp</th><td>2025.3.3</td><td>2026.2.0</td>' in page
    markdown = cli("report", run_folder, "--markdown").stdout
    assert "| what differs | old (reference) | new |" in markdown
    assert "| package intel-openmp | 2025.3.3 | 2026.2.0 |" in markdown


def test_what_only_one_has_seen_yet_is_no_difference(bench_images, old, new):
    new.worker("baseline", does="exit", status=3)
    result = bench_images(*IMAGES, "--json").ended(1)
    found = json.loads(result.stdout)["image_differences"]["new"]
    assert [one["what"] for one in found] == ["image", "image digest"]


def test_many_differences_are_shortened_in_the_report_and_whole_in_the_details(bench_images, old, new, cli, run_folder):
    old.inspection(contents=contents(system={f"package{number}": "1" for number in range(40)}))
    new.inspection(contents=contents(system={f"package{number}": "2" for number in range(40)}))
    printed = bench_images().stdout
    assert "system package package0" in printed
    assert "system package package39" not in printed
    assert "and 37 more, which --details shows" in printed
    assert "system package package39" in cli("report", run_folder, "--details").stdout


def test_only_runs_that_compare_images_ask_for_all_packages(bench_images, old, new, bench, simulation):
    bench_images()
    bench("mine", "--blocks", 1, "--output", simulation.folder / "run")
    asked = [
        start["work"]["contents"]
        for one in (old, new, simulation)
        for start in one.starts(all=True)
        if start["name"] == "inspect"
    ]
    assert asked == [True, True, False]


def test_other_weights_to_begin_with_are_said_and_losses_not_compared(bench_images, old, new, run_folder):
    """Another PyTorch may draw other numbers: the times can be compared all the same."""
    new.worker("baseline", digests={"initial_weights": "9" * 64}, losses=[9.0, 8.0, 7.0])
    result = bench_images().ended(0)
    assert "Losses not compared: the images' PyTorch versions start from different weights" in words(result.stdout)
    assert "LOSSES DIFFER" not in result.stdout
    assert conclude(record.read(run_folder)).comparisons[0].losses is None


def test_other_code_is_a_failure_in_another_image_too(bench_images, old, new):
    new.worker("baseline", digests={"code": "9" * 64})
    result = bench_images().ended(1)
    assert "its code differs from that of earlier samples" in result.stdout


# --- what a run of images is not ---


def test_it_is_no_calibration_and_takes_that_of_its_reference(
    bench_images, cli, old, new, own_surroundings, run_folder
):
    results = own_surroundings / "results"
    fixed = ("--data", "synthetic", "--steps", 3, "--blocks", 6)
    for image in (NEW, OLD):
        cli("plan", "--engine", "docker", "--image", image, *fixed, "--output", results / image[-3:]).ended(0)
    bench_images()
    first = record.first(run_folder)
    assert first["study"]["view"] == "images"
    assert first["calibration"]["folder"] == str(results / "old")


# --- bad input: one line, status 2, nothing recorded ---


@pytest.fixture
def images_refused(refused, run_folder):
    def run(*arguments):
        line = refused("bench", "--engine", "docker", *arguments, "--output", run_folder)
        assert not run_folder.exists()
        return line.removeprefix("envkit: ")

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "local", "--against-image", OLD], "--against-image has no effect on the engine local; "),
        (["--engine", "local", "--against-python", "gone"], "gone: no such executable; give an interpreter, for "),
        (["--engine", "local", "--against-python", "sh", "--", "x"], "--against-python: your own command "),
        (["--against-python", "sh"], "--against-python has no effect on the engine docker; give --engine local, or "),
        (["--against-sif", "x.sif"],
         "--against-sif has no effect on the engine docker; give --engine apptainer, or leave it out"),
        (["--against-sqsh", "x.sqsh"],
         "--against-sqsh has no effect on the engine docker; give --engine enroot, or leave it out"),
        (["--against-image", OLD, "--against-sif", "x.sif"], "--against-sif has no effect on the engine docker"),
        (["jemalloc", *IMAGES], "--against-image compares two images under one profile; choose one of: baseline, jem"),
        ([*IMAGES, "--workload", "all"], "--workload all: --against-image trains one workload; name one of: cnn, "),
        ([*IMAGES, "--sif", "x.sif"], "--sif has no effect on the engine docker"),
        (["--image", OLD, "--against-image", OLD],
         f"--against-image {OLD}: is also the image of --image; name two images, or measure one against itself: "
         f"envkit plan --engine docker --image {OLD}"),
        (["--image", NEW, "--against-image", "gone"], "there is no image 'gone'"),
        (["--image", "gone", "--against-image", OLD], "there is no image 'gone'"),
        ([*IMAGES, "--nproc", 2, "--full"], "--nproc 2 has no effect with --full"),
        ([*IMAGES, "--nodes", 2], "--engine docker: "),
    ],
)  # fmt: skip
def test_bad_input(images_refused, old, new, arguments, said):
    assert images_refused("baseline", *arguments).startswith(said)


def test_what_a_profile_lacks_is_said_of_the_image_that_lacks_it(images_refused, old, new):
    assert images_refused("mimalloc", *IMAGES).startswith(f"{OLD}: profile 'mimalloc' preloads mimalloc, which is not ")


def test_one_image_under_two_names_is_refused(images_refused, images):
    digest = f"sha256:{'7' * 64}"
    for name in (OLD, NEW):
        images.add(name, digest)
    assert images_refused("baseline", *IMAGES) == (
        f"{NEW} and {OLD} are the same image ({digest[:19]}…); name two different images, or measure "
        "one against itself: envkit plan"
    )


def test_images_for_two_architectures_are_refused(images_refused, old, new):
    new.inspection(fingerprint={"cpu_model": "x", "architecture": "aarch64"})
    said = f"{NEW} is for aarch64 and {OLD} for x86_64: one of them is emulated here"
    assert images_refused("baseline", *IMAGES).startswith(said)


def test_images_alone_are_no_command_to_go_on_with(bench, simulation, instant, refused, run_folder):
    bench("baseline")
    line = refused("bench", "--resume", run_folder, "--against-image", OLD)
    assert line.startswith(
        "envkit: --against-image can be given with --resume only if the whole command is given again"
    )


@pytest.mark.parametrize(
    ("image", "how"),
    [
        ("envkit-cpu", "make image"),
        ("host:5000/envkit-cpu:latest", "make image"),
        ("envkit-cpu:debian", "make image VARIANT=debian"),
        ("envkit-cuda", "make image VARIANT=cuda"),
        ("host:5000/envkit-cuda-12:latest", "make image VARIANT=cuda-12"),
        ("other/envkit", "make image"),
        ("other:debian", "make image"),
    ],
)
def test_how_an_image_is_made_that_is_not_there(image, how):
    assert container.made_by(image) == how


@pytest.mark.parametrize(("name", "how"), [("envkit-cpu-x", "make sif VARIANT=x, or"), ("mine", "make sif, or")])
def test_how_a_sif_is_made_that_is_not_there(refused, monkeypatch, tmp_path, name, how):
    """Whether Apptainer is there or not: a file with its name is enough to get so far."""
    (tmp_path / "apptainer").write_text("#!/bin/sh\n")
    (tmp_path / "apptainer").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    images = ("--sif", tmp_path / "another.sif", "--against-sif", tmp_path / f"{name}.sif")
    assert f"build it with: {how} name another" in refused("bench", "baseline", "--engine", "apptainer", *images)
