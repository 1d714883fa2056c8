"""What is not installed, and the commands that get it."""

from __future__ import annotations

import platform

import pytest
from envkit.advice.missing import missing, os_release, sources
from envkit.common.errors import InputError
from envkit.profiles import profile
from envkit.profiles.messages import CommandMissing
from envkit.tuning.narrow import require, why

from tests.simulated_worker import inspection

NOTHING = inspection([], {"libraries": {}})
# Of /etc/os-release.
DEBIAN, DEBIAN_13 = {"ID": "debian", "VERSION_ID": "12"}, {"ID": "debian", "VERSION_ID": "13"}


def left_out(*names):
    reasons = {}
    for name in names:
        try:
            require(profile.load(name), NOTHING)
        except InputError as error:
            reasons[name] = why(error)
    return reasons


def test_all_libraries_have_one_command_as_root_and_one_without():
    names = ("intel-omp", "jemalloc-retain", "jemalloc", "tcmalloc-retain", "mimalloc-retain", "mimalloc-2")
    lacking = missing(left_out(*names), NOTHING, DEBIAN)
    assert lacking.profiles == names
    assert lacking.libraries == ("intel-openmp", "jemalloc", "tcmalloc", "mimalloc", "mimalloc-2")
    assert lacking.as_root == (
        "apt-get install libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 libatomic1 && "
        "/sim/bin/python -m pip install intel-openmp cmeel-mimalloc"
    )
    assert lacking.without_root == (
        "/sim/bin/python -m pip install intel-openmp cmeel-mimalloc && "
        "conda create -p /sim/conda -c conda-forge jemalloc gperftools"
    )
    assert (lacking.not_as_root, lacking.only_root) == ((), ("mimalloc-2",))
    in_image = lacking.without_commands
    assert (in_image.libraries, in_image.as_root, in_image.without_root) == (lacking.libraries, "", "")


def test_conda_forges_libraries_go_where_the_python_finds_them(tmp_path):
    here = {**NOTHING, "python": {**NOTHING["python"], "prefix": str(tmp_path)}}
    create = f"conda create -p {tmp_path}/conda -c conda-forge jemalloc"
    assert missing(left_out("jemalloc"), here, DEBIAN).without_root == create
    (tmp_path / "conda-meta").mkdir()
    install = f"conda install -p {tmp_path} -c conda-forge jemalloc"
    assert missing(left_out("jemalloc"), here, DEBIAN).without_root == install


def test_nothing_is_missing_where_profiles_are_left_out_for_something_else():
    assert missing({}, NOTHING, DEBIAN) is None
    assert missing({"interleave": CommandMissing("numactl")}, NOTHING, DEBIAN) is None


@pytest.mark.parametrize(
    ("release", "command", "not_as_root"),
    [
        (DEBIAN_13, "apt-get install libjemalloc2 libtcmalloc-minimal4 libmimalloc3 libatomic1", ("mimalloc-2",)),
        (
            {"ID": "fedora", "VERSION_ID": "42"},
            "dnf install jemalloc gperftools-libs && /sim/bin/python -m pip install cmeel-mimalloc", ("mimalloc-2",),
        ),
        (
            {"ID": "rocky", "ID_LIKE": "rhel centos fedora", "VERSION_ID": "9.4"},
            "dnf install epel-release && dnf install jemalloc gperftools-libs && "
            "/sim/bin/python -m pip install cmeel-mimalloc", ("mimalloc-2",),
        ),
        (
            {"ID": "opensuse-leap", "ID_LIKE": "suse opensuse", "VERSION_ID": "15.6"},
            "zypper install libjemalloc2 libtcmalloc4 && /sim/bin/python -m pip install cmeel-mimalloc",
            ("mimalloc-2",),
        ),
        (
            {"ID": "manjaro", "ID_LIKE": "arch"},
            "pacman -S jemalloc gperftools && /sim/bin/python -m pip install cmeel-mimalloc", ("mimalloc-2",),
        ),
    ],
)  # fmt: skip
def test_root_installs_with_the_system_s_own_package_manager(release, command, not_as_root):
    lacking = missing(left_out("jemalloc", "tcmalloc", "mimalloc", "mimalloc-2"), NOTHING, release)
    assert (lacking.as_root, lacking.not_as_root) == (command, not_as_root)


@pytest.mark.parametrize(
    "release",
    [{}, {"ID": "alpine"}, {"ID": "rhel", "ID_LIKE": "fedora"}, {"ID": "amzn", "ID_LIKE": "fedora"},
     {"ID": "sles", "ID_LIKE": "suse"}],
)  # fmt: skip
def test_where_nothing_is_known_of_the_system_s_packages_there_is_the_way_without_root(release):
    lacking = missing(left_out("jemalloc"), NOTHING, release)
    assert (lacking.as_root, lacking.without_root) == ("", "conda create -p /sim/conda -c conda-forge jemalloc")


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ({"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "24.04"}, ("debian",)),
        ({"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "25.10"}, ("debian 13", "debian")),
        ({"ID": "debian"}, ("debian 13", "debian")),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian", "VERSION_ID": "22"}, ("debian",)),
    ],
)
def test_releases_of_one_distribution_have_other_packages(release, expected):
    assert sources(release) == expected


def test_a_machine_without_the_file_says_nothing_of_its_distribution(monkeypatch):
    def absent():
        raise FileNotFoundError

    monkeypatch.setattr(platform, "freedesktop_os_release", absent)
    assert os_release() == {}
