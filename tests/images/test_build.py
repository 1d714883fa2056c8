"""What `images/build` and the files that it builds from promise, as far as that can be seen without a builder."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.images.conda_channel import make_channel, served
from tests.images.conftest import assert_one_clear_line, copy_of_scripts

SCRIPTS = sorted(
    path
    for path in [*PROJECT.glob("images/*"), *PROJECT.glob(".ci/engines/*"), PROJECT / ".ci/run"]
    if path.is_file() and path.read_bytes()[:64].startswith((b"#!/bin/bash", b"#!/bin/sh", b"# shellcheck"))
)


def build(*arguments: object, tree: Path = PROJECT, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tree / "images/build", *map(str, arguments)], cwd=tree, env={**os.environ, **variables}, timeout=600,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what images/build needs of the project, to change."""
    tree = copy_of_scripts(tmp_path / "project")
    shutil.copy(PROJECT / "Apptainerfile", tree)
    (tree / ".venv").symlink_to(sys.prefix)
    return tree


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_shell_scripts_parse(script: Path) -> None:
    shell = "sh" if script.read_text().startswith("#!/bin/sh") else "bash"
    result = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_dockerfiles_have_nothing_that_hadolint_objects_to() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is missing: make dev")
    files = sorted(PROJECT.glob("images/*/Dockerfile"))
    assert [file.parent.name for file in files] == ["cpu"]
    result = subprocess.run([hadolint, *files], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "oci, sif or sqsh"),
        (("docker",), "no argument 'docker'"),
        (("oci", "--engine", "lxc"), "--engine lxc: docker or podman"),
        (("oci", "--variant", "pip"), "images/variants.yaml: there is no variant 'pip'; there are: debian, conda, "),
        (("oci", "--tag"), "--tag needs a value"),
        (("oci", "--from", "x"), "--from is for sif and sqsh"),
        (("oci", "--output", "x"), "--output is for sif and sqsh"),
        (("sif", "--tag", "x"), "--tag is for oci"),
        (("sqsh", "--tag", "x"), "--tag is for oci"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], said: str) -> None:
    assert_one_clear_line(build(*arguments), 2, said)


def test_help_names_every_option() -> None:
    result = build("--help")
    assert result.returncode == 0
    for word in ("--variant", "--tag", "--output", "--from", "BASE", "BOOTSTRAP", "ENVKIT_CONDA_CHANNEL"):
        assert word in result.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk to fill")
@pytest.mark.skipif(shutil.which("apptainer") is None, reason="apptainer is not installed")
def test_a_full_disk_leaves_no_image(tree: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["images/build", "sif", "--variant", "debian"]
    # a mount namespace of its own, which takes the small disk along when it ends; what was left on it is listed at last
    script = f'mount -t tmpfs -o size=20m none {disk} && "$@"; status=$?; ls {disk}; exit $status'
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command], cwd=tree, timeout=600,
        env={**os.environ, "KIT_BUILD_DIR": str(disk)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert_one_clear_line(result, 1, "no space left", str(disk), "KIT_BUILD_DIR")
    assert ".sif" not in result.stdout


@pytest.mark.parametrize(
    ("var_lib", "said"),
    [
        ("3700 /", "the disk at / has 3700 MB free, and this needs "),
        ("200 /var", "the disk at /var has 200 MB free, and this needs "),
    ],
)
def test_ci_on_a_small_disk_ends_before_it_installs_anything(tmp_path: Path, var_lib: str, said: str) -> None:
    """By a copy of the script alone, which has nothing else to start."""
    script, df = tmp_path / ".ci/run", tmp_path / "df"
    script.parent.mkdir()
    shutil.copy(PROJECT / ".ci/run", script)
    other = var_lib if var_lib.endswith(" /") else "90000 /"
    df.write_text(
        f"#!/bin/sh\necho Avail Mounted on\ncase $* in */var/lib) echo {var_lib} ;; *) echo {other} ;; esac\n"
    )
    df.chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run([script], env=variables, timeout=60, capture_output=True, text=True, check=False)
    assert_one_clear_line(result, 1, f".ci/run: no space left: {said}")
    assert result.stdout == ""


# --- variants: what builders are told, by stand-ins for them, of wheels that are made up ---

# What images/build looks at, and what it tells the builder, whose files go when it has ended.
DOCKER = """\
#!/bin/bash
case "$*" in
*Labels*) exit 1 ;;
*RepoDigests*@*) grep -qF "${{@: -1}}" {pulled} && cat {identity} ;;
*RepoDigests*) cat {identity} ;;
pull*) echo "$2" >>{pulled} ;;
run*) cat {contents} ;;
*Size*) echo 3000000000 ;;
"image inspect"*) tail -n 1 {identity} ;;
save*) echo image >"$3" ;;
build*)
    printf '%s\\n' "$@" >{told}
    (cd "${{@: -1}}" && find . -type f -printf '%P\\n') >{files}
    ;;
esac
"""
APPTAINER = """\
#!/bin/bash
[[ $* != *" exec "* ]] || exec cat {contents}
printf '%s\\n' "$@" >{told}
for argument; do
    [[ $argument != STAGED=* ]] || (cd "${{argument#STAGED=}}" && find . -type f -printf '%P\\n') >{files}
done
echo image >"${{@: -2:1}}"
"""
DISK = "#!/bin/sh\necho Avail\necho {free}\n"
MADE_UP = """\
{name}:
  title: A test
  torch: {torch}
  intel-openmp: "1.0"
  libraries: debian
  locks: {{packages: {folder}/packages.lock, torch: {folder}/torch.lock}}
"""
MADE_UP_CONDA = """\
conda:
  title: A test
  torch: 2.13.0+cpu
  intel-openmp: "1.0"
  libraries: conda
  locks: {packages: cpu/packages.lock, torch: cpu/torch.lock, conda: cpu/conda.lock}
"""


@dataclass
class Builders:
    """Stand-ins for Docker, Apptainer and df in the folder ``path``; the first two write down what they are told."""

    tree: Path
    path: Path

    def has(self, megabytes: int) -> None:
        self._script("df", DISK.format(free=megabytes))

    def start(self) -> None:
        self.path.mkdir()
        names = ("told", "files", "identity", "contents", "pulled", "manifest")
        told = {name: self.path / name for name in names}
        self.has_base(0)
        self.has_packages(libc6="1")
        (self.path / "pulled").touch()
        self._script("docker", DOCKER.format(**told))
        self._script("apptainer", APPTAINER.format(**told))
        self.has(megabytes=100_000)

    def has_base(self, digit: int) -> None:
        """Have an image under the base image's name, whose digests are made of one digit."""
        (self.path / "identity").write_text(f"debian@sha256:{str(digit) * 64}\nsha256:{str(digit) * 63}f\n")

    def has_packages(self, **versions: str) -> None:
        """Have the next image made with these of Debian's packages."""
        packages = [{"name": name, "version": one, "architecture": "amd64"} for name, one in versions.items()]
        (self.path / "contents").write_text(json.dumps({"debian": packages, "python": [], "conda": []}) + "\n")

    def _script(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def build(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": f"{self.path}:{os.environ['PATH']}", "KIT_BUILD_DIR": str(self.tree / "build")}
        return build(*arguments, tree=self.tree, **variables)

    def forget(self) -> None:
        (self.path / "told").unlink()

    def told(self) -> list[str]:
        """Return the words of the last build, or none."""
        if not (self.path / "told").exists():
            return []
        return (self.path / "told").read_text().splitlines()

    def arguments(self) -> dict[str, str]:
        """Those of the build, by name."""
        pairs = (value.split("=", 1) for flag, value in pairwise(self.told()) if flag == "--build-arg")
        return dict(pairs)

    def files(self) -> set[str]:
        """What the image is made of."""
        return set((self.path / "files").read_text().splitlines())


@pytest.fixture
def builders(tree: Path, tmp_path: Path) -> Builders:
    """With two variants: ``plain``, which is the first, and ``cuda``."""
    house = tree / "build/wheelhouse"
    house.mkdir(parents=True)
    texts = []
    for name, folder, torch in (("plain", "cpu", "2.13.0+cpu"), ("cuda", "cuda", "2.13.0")):
        for lock, package, version in (("packages", "intel_openmp", "1.0"), ("torch", "torch", torch)):
            wheel = house / f"{package}-{version}-py3-none-any.whl"
            wheel.write_text(f"{package} {version}")
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            line = f"{package.replace('_', '-')}=={version} --hash=sha256:{digest}\n"
            (tree / f"images/{folder}/{lock}.lock").write_text(line)
        texts.append(MADE_UP.format(name=name, folder=folder, torch=torch))
    (tree / "images/variants.yaml").write_text("".join(texts))
    made = Builders(tree, tmp_path / "bin")
    made.start()
    return made


@pytest.mark.parametrize(
    ("variant", "image", "torch"),
    [
        ("", "envkit-cpu", "torch-2.13.0+cpu"),
        ("plain", "envkit-cpu:plain", "torch-2.13.0+cpu"),
        ("cuda", "envkit-cuda", "torch-2.13.0"),
    ],
)
@pytest.mark.parametrize("kind", ["oci", "sif"])
def test_a_variant_is_made_of_what_its_locks_name(
    builders: Builders, kind: str, variant: str, image: str, torch: str
) -> None:
    result = builders.build(kind, *(("--variant", variant) if variant else ()))
    assert result.returncode == 0, result
    given = builders.arguments()
    assert (given["VARIANT"], given["TITLE"]) == (variant or "plain", image.partition(":")[0])
    wheels = {f"wheelhouse/{wheel}-py3-none-any.whl" for wheel in (torch, "intel_openmp-1.0")}
    assert {name for name in builders.files() if name.endswith(".whl")} == wheels
    assert {"requirements.lock", "torch.lock", "install.sh", "manifest.sha256"} < builders.files()
    if kind == "oci":
        told = builders.told()
        assert told[told.index("--tag") + 1] == image
        assert "Dockerfile" in builders.files()
    else:
        assert (builders.tree / f"build/{image.replace(':', '-')}.sif").read_text() == "image\n"


@pytest.mark.parametrize(
    ("image", "sif"),
    [
        ("envkit-cpu", "envkit-cpu"),
        ("envkit-cpu:debian", "envkit-cpu-debian"),
        ("registry:5000/kit/envkit-cuda:latest", "envkit-cuda"),
    ],
)
def test_a_sif_of_an_image_that_is_there_is_called_like_it(builders: Builders, image: str, sif: str) -> None:
    builders.has(megabytes=9000)
    result = builders.build("sif", "--from", image)
    assert result.returncode == 0, result
    assert (builders.tree / f"build/{sif}.sif").read_text() == "image\n"
    builders.has(megabytes=8999)  # three times what the image takes
    again = builders.build("sif", "--from", image, "--output", builders.tree / "other.sif")
    assert_one_clear_line(again, 1, "has 8999 MB free, and the build needs 9000: free some")


@pytest.mark.parametrize(
    ("said", "full"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", True),
        ("OSError: [Errno 122] Disk quota exceeded: '/home/me/.venv'", True),
        ("ERROR: No matching distribution found for torch", False),
    ],
)
def test_a_full_disk_is_told_from_a_wheel_that_is_nowhere(tmp_path: Path, said: str, full: bool) -> None:
    (tmp_path / "log.last").write_text(said)
    script = f". images/common.sh; log={tmp_path}/log; no_room"
    assert (subprocess.run(["bash", "-c", script], cwd=PROJECT, check=False).returncode == 0) == full


@pytest.mark.parametrize(
    ("said", "full"),
    [
        ("failed to write: no space left on device", True),
        ("mkdir: cannot create directory: Disk quota exceeded", True),
        ("", True),  # as the log is on that disk
        ("E: Unable to locate package numactl", False),
    ],
)
def test_a_builder_whose_disk_is_full_is_told_from_one_that_fails(builders: Builders, said: str, full: bool) -> None:
    if not said:
        (builders.tree / "build/oci.log").symlink_to("/dev/full")
    docker = builders.path / "docker"
    docker.write_text(docker.read_text().replace("build*)", f"build*)\n    echo '{said or 'any words'}' && exit 1"))
    result = builders.build("oci", "--variant", "plain")
    assert_one_clear_line(result, 1, "no space left on a disk that the build uses" if full else f"build failed: {said}")
    assert not list((builders.tree / "build").glob(".work.*"))


@pytest.mark.parametrize(
    "text", ["", "# none yet\n", "{package}=={version} ; python_version == '3.12' --hash=sha256:0\n"]
)
@pytest.mark.parametrize(("lock", "package"), [("torch", "torch"), ("packages", "intel-openmp")])
@pytest.mark.parametrize("kind", ["oci", "sif"])
def test_a_lock_that_is_empty_or_for_another_python_is_refused_before_a_builder_is_asked(
    builders: Builders, kind: str, lock: str, package: str, text: str
) -> None:
    asked = builders.path / "asked"
    for name in ("docker", "apptainer"):
        (builders.path / name).write_text(f"#!/bin/sh\necho {name} >{asked}\n")
    version = {"torch": "2.13.0", "packages": "1.0"}[lock]
    (builders.tree / f"images/cuda/{lock}.lock").write_text(text.format(package=package, version=version))
    said = f"cuda.{package}: is {version}, and images/cuda/{lock}.lock has none of it"
    assert_one_clear_line(builders.build(kind, "--variant", "cuda"), 2, said)
    assert not asked.exists()


# Where a recipe names what it takes, and how.
ARGUMENTS = {"oci": ("images/cpu/Dockerfile", r"^ARG (\w+)"), "sif": ("Apptainerfile", r"^    (\w+)=")}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_recipe_takes_every_argument_that_it_is_given(builders: Builders, kind: str) -> None:
    builders.build(kind, "--variant", "cuda")
    file, pattern = ARGUMENTS[kind]
    assert builders.arguments().keys() == set(re.findall(pattern, (PROJECT / file).read_text(), re.MULTILINE))


@pytest.fixture
def conda_builders(builders: Builders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Builders:
    """With a variant ``conda``, which has no lock of conda packages."""
    variants = builders.tree / "images/variants.yaml"
    variants.write_text(variants.read_text() + MADE_UP_CONDA)
    (builders.tree / "images/cpu/conda.lock").unlink(missing_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return builders


@pytest.mark.skipif((platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="the lock is for linux-64")
@pytest.mark.parametrize("content", [None, '{"packages": []}'], ids=["absent", "empty"])
@pytest.mark.parametrize("kind", ["oci", "sif"])
def test_an_image_has_the_locked_conda_packages_or_is_not_made(
    conda_builders: Builders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, content: str | None
) -> None:
    pytest.importorskip("rattler", reason="py-rattler is missing: make dev")
    builders, lock = conda_builders, conda_builders.tree / "images/cpu/conda.lock"
    if content is not None:
        lock.write_text(content)
    with served(make_channel(tmp_path / "conda-forge")) as url:
        monkeypatch.setenv("ENVKIT_CONDA_CHANNEL", url)
        refused = builders.build(kind, "--variant", "conda")
        command = ".venv/bin/python images/conda_libraries.py lock"
        assert_one_clear_line(refused, 2, "images/cpu/conda.lock: ", f"run '{command}' where", "libraries: debian")
        assert builders.told() == []
        assert (lock.read_text() if lock.exists() else None) == content
        subprocess.run(command.split(), cwd=builders.tree, check=True, capture_output=True)
        result = builders.build(kind, "--variant", "conda")
    assert result.returncode == 0, result
    locks = [builders.tree / f"images/cpu/{name}.lock" for name in ("packages", "torch", "conda")]
    together = hashlib.sha256(b"".join(path.read_bytes() for path in locks)).hexdigest()
    assert builders.arguments()["LOCK_DIGEST"] == together
    assert {"conda.sha256", "conda/lib/libjemalloc.so.2"} < builders.files()
    if kind == "sif":  # the stand-in for Docker knows no labels
        again = builders.build(kind, "--variant", "conda")
        assert again.returncode == 0, again
        assert "is up to date" in again.stdout


# --- what has no lock: the base image, and Debian's packages ---


@pytest.mark.parametrize("kind", ["oci", "sif"])
def test_another_image_under_the_name_of_the_base_is_taken_only_when_that_is_said(
    builders: Builders, kind: str
) -> None:
    assert builders.build(kind).returncode == 0
    builders.forget()
    builders.has_base(1)
    refused = builders.build(kind)
    digests = f"debian:bookworm-slim is sha256:{'1' * 64}, and the last build had sha256:{'0' * 64}"
    assert_one_clear_line(refused, 2, digests, "--update")
    assert builders.told() == []
    taken = builders.build(kind, "--update")
    assert taken.returncode == 0, taken
    assert digests in taken.stdout
    assert builders.told()
    after = builders.build(kind)
    assert after.returncode == 0, after
    assert digests not in after.stdout


SBOM_WHEEL, SBOM_CONDA = "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", "jemalloc-5.3.0-h0_0.conda"
IN_AN_IMAGE = [
    f"{'a' * 64}  {SBOM_CONDA}",
    f"{'b' * 64}  {SBOM_WHEEL}",
    json.dumps({
        "debian": [{"name": "libstdc++6", "version": "12.2.0-14+deb12u1", "architecture": "amd64"}],
        "python": [{"name": "torch", "version": "2.13.0+cpu", "licence": "BSD-3-Clause"}],
        "conda": [{"name": "jemalloc", "version": "5.3.0", "build": "h0_0", "licence": "BSD-2-Clause",
                   "url": f"https://conda.anaconda.org/conda-forge/linux-64/{SBOM_CONDA}"}],
    }),
    json.dumps({"base": {"name": "debian:bookworm-slim", "digest": f"sha256:{'c' * 64}"}}),
]  # fmt: skip


def sbom(builders: Builders, lines: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    (builders.path / "contents").write_text("".join(f"{line}\n" for line in lines))
    path = f"{builders.path}:{os.environ['PATH']}"
    command = [builders.tree / "images/sbom", *(arguments or ("docker", "envkit-cpu"))]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def test_the_bill_of_materials_names_all_that_an_image_has(builders: Builders) -> None:
    result = sbom(builders, IN_AN_IMAGE)
    assert result.returncode == 0, result
    document = json.loads(result.stdout)
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(
        r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", document["serialNumber"]
    )
    assert document["metadata"]["component"]["name"] == "envkit-cpu"
    base, *packages = document["components"]
    hashes = [{"alg": "SHA-256", "content": "c" * 64}]
    assert (base["type"], base["name"], base["hashes"]) == ("container", "debian:bookworm-slim", hashes)
    found = {one["purl"]: (one["version"], *(one.get(key) for key in ("hashes", "licenses"))) for one in packages}
    assert found == {
        f"pkg:pypi/torch@2.13.0%2Bcpu?file_name={SBOM_WHEEL.replace('+', '%2B')}": (
            "2.13.0+cpu", [{"alg": "SHA-256", "content": "b" * 64}], [{"license": {"name": "BSD-3-Clause"}}],
        ),
        "pkg:conda/jemalloc@5.3.0?build=h0_0&channel=conda-forge&subdir=linux-64&type=conda": (
            "5.3.0", [{"alg": "SHA-256", "content": "a" * 64}], [{"license": {"name": "BSD-2-Clause"}}],
        ),
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64": ("12.2.0-14+deb12u1", None, None),
    }  # fmt: skip
    references = [one["bom-ref"] for one in document["components"]]
    assert len(set(references)) == len(references)
    assert document["dependencies"] == [{"ref": "image", "dependsOn": references}]
    assert sbom(builders, IN_AN_IMAGE).stdout == result.stdout


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (IN_AN_IMAGE[:2], "the image does not say what it has of debian: build it anew"),
        (IN_AN_IMAGE[1:], f"has {SBOM_CONDA}, which its manifest does not name"),
        ([f"{'d' * 64}  other-1-h0_0.conda", *IN_AN_IMAGE], "names other-1-h0_0.conda, which is no package"),
        (["{", *IN_AN_IMAGE], "envkit-cpu: "),
        (["one two three"], "envkit-cpu: "),
    ],
)
def test_no_bill_is_made_of_half_an_image(builders: Builders, lines: list[str], said: str) -> None:
    result = sbom(builders, lines)
    assert_one_clear_line(result, 1, "images/sbom: envkit-cpu: ", said)
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [("docker",), ("lxc", "envkit-cpu"), ("docker", "a", "b")])
def test_a_bill_of_nothing(builders: Builders, arguments: tuple[str, ...]) -> None:
    assert_one_clear_line(sbom(builders, IN_AN_IMAGE, *arguments), 2, "usage: images/sbom docker|podman IMAGE")


@pytest.mark.parametrize("kind", ["oci", "sif"])
def test_a_base_that_is_named_by_its_digest_is_no_other_one(builders: Builders, kind: str) -> None:
    variants = builders.tree / "images/variants.yaml"
    named = variants.read_text().replace("libraries:", f"base: debian:bookworm-slim@sha256:{'1' * 64}\n  libraries:")
    variants.write_text(named)
    pinned = f"debian@sha256:{'1' * 64}"
    result = builders.build(kind)  # with an image under that name that has another digest
    if kind == "oci":
        assert (builders.path / "pulled").read_text() == f"{pinned}\n"
        # the stand-in for a registry gives another image
        assert_one_clear_line(result, 1, f"docker has no image debian:bookworm-slim@sha256:{'1' * 64}")
        assert builders.told() == []
    else:
        assert result.returncode == 0, result
        assert (builders.arguments()["BASE"], builders.arguments()["BOOTSTRAP"]) == (pinned, "docker")
    builders.has_base(1)
    result = builders.build(kind)
    assert result.returncode == 0, result
    assert "may be another image another day" not in result.stdout
    if kind == "oci":
        assert builders.arguments()["BASE"] == "debian:bookworm-slim"


def test_a_base_that_is_a_file_has_the_digest_of_the_file(builders: Builders) -> None:
    archive = builders.tree / "base@home.tar"
    archive.write_text("files")
    digest = f"sha256:{hashlib.sha256(b'files').hexdigest()}"
    command = [builders.tree / "images/build", "sif"]
    variables = {"PATH": f"{builders.path}:{os.environ['PATH']}", "KIT_BUILD_DIR": str(builders.tree / "build"),
                 "BASE": str(archive), "BOOTSTRAP": "docker-archive"}  # fmt: skip
    subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True)
    record = json.loads((builders.tree / "build/records/apptainer-plain.json").read_text())
    assert record["base"] == {"name": str(archive), "digest": digest}
    assert "base.json" in builders.files()
    archive.write_text("other files")
    refused = build("sif", tree=builders.tree, **variables)
    assert_one_clear_line(refused, 2, f"the base image {archive} is sha256:", f"the last build had {digest}")


@pytest.mark.parametrize("base", ["Debian", "debian@sha256:12", "debian:a b", "-x", "debian@sha512:" + "0" * 64])
def test_what_is_no_base_image(builders: Builders, base: str) -> None:
    variants = builders.tree / "images/variants.yaml"
    variants.write_text(variants.read_text().replace("libraries:", f"base: '{base}'\n  libraries:"))
    assert_one_clear_line(builders.build("oci"), 2, f"plain.base: '{base}' is no image")


@pytest.mark.parametrize("kind", ["oci", "sif"])
def test_other_versions_of_debians_packages_are_said(builders: Builders, kind: str) -> None:
    builders.has_packages(libc6="1", bash="5", perl="4")
    first = builders.build(kind, "--variant", "plain")
    assert "Debian's packages" not in first.stdout, first
    builders.has_packages(libc6="2", bash="5", numactl="1")
    (builders.tree / "images/contents.py").write_text("# so that it is built again\n")
    second = builders.build(kind, "--variant", "plain")
    assert second.returncode == 0, second
    _, _, said = second.stdout.partition("3 of Debian's packages are not those of the last build")
    listed = [line for line in said.splitlines() if line.startswith("  ")]
    assert listed == [
        "  libc6:amd64 1 -> 2",
        "  numactl:amd64 (new) -> 1",
        "  perl:amd64 4 -> (gone)",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"base": 1}', '{"base": {"name": "a", "digest": 1}}', "[" * 100_000])
def test_a_damaged_record_of_the_last_build_stops_nothing(builders: Builders, text: str) -> None:
    record = builders.tree / "build/records/docker-plain.json"
    record.parent.mkdir()
    record.write_text(text)
    result = builders.build("oci")
    assert result.returncode == 0, result
    assert "is damaged, so nothing is compared with the last build" in result.stderr
    assert json.loads(record.read_text())["debian"] == {"libc6:amd64": "1"}


@pytest.mark.parametrize(("kind", "needs"), [("oci", 7000), ("sif", 20000)])
def test_a_build_with_cuda_begins_only_where_there_is_room(builders: Builders, kind: str, needs: int) -> None:
    builders.has(megabytes=6000)
    assert builders.build(kind, "--variant", "plain").returncode == 0
    result = builders.build(kind, "--variant", "cuda")
    assert_one_clear_line(result, 1, f"has 6000 MB free, and the build needs {needs}: free some")


def test_nothing_but_text_of_a_build_s_log_reaches_the_terminal() -> None:
    text = "a\x1b[31mb\x1b]0;t\x07\x1b]52;c;Zg==\x07c\x9b2J\x85\r\x08\x7f\u202e\u2066\u200b\ufeffd é测\t"
    script = 'me=m; . images/common.sh; say "$1"; printf "%s\\n" "$1" | plain; die "$1"'
    ended = subprocess.run(["bash", "-c", script, "sh", text], cwd=PROJECT, capture_output=True, check=False)
    shown = "ab]0;t]52;c;Zg==c2Jd é测\t\n"
    assert (ended.returncode, ended.stdout.decode(), ended.stderr.decode()) == (2, f"m: {shown}{shown}", f"m: {shown}")
