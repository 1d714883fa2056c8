"""What is not installed, and the commands that get it."""

from __future__ import annotations

from envkit.advice.missing import missing
from envkit.common.errors import InputError
from envkit.profiles import profile
from envkit.profiles.messages import CommandMissing
from envkit.tuning.narrow import require, why

from tests.simulated_worker import inspection

NOTHING = inspection([], {"libraries": {}})


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
    lacking = missing(left_out(*names), NOTHING)
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
    assert lacking.only_root == ("mimalloc-2",)
    in_image = lacking.without_commands
    assert (in_image.libraries, in_image.as_root, in_image.without_root) == (lacking.libraries, "", "")


def test_conda_forges_libraries_go_where_the_python_finds_them(tmp_path):
    here = {**NOTHING, "python": {**NOTHING["python"], "prefix": str(tmp_path)}}
    create = f"conda create -p {tmp_path}/conda -c conda-forge jemalloc"
    assert missing(left_out("jemalloc"), here).without_root == create
    (tmp_path / "conda-meta").mkdir()
    install = f"conda install -p {tmp_path} -c conda-forge jemalloc"
    assert missing(left_out("jemalloc"), here).without_root == install


def test_nothing_is_missing_where_profiles_are_left_out_for_something_else():
    assert missing({}, NOTHING) is None
    assert missing({"interleave": CommandMissing("numactl")}, NOTHING) is None
