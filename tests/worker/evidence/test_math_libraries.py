"""What oneDNN and MKL print of themselves, taken from real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from envkit.engines.base import PROJECT
from envkit.worker.evidence import math_libraries
from envkit.worker.evidence.math_libraries import mkl, onednn, parse_verbose
from envkit.worker.libraries import locate, search_folders
from envkit.worker.messages.evidence import MklSilent

HEAD = """\
onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)
onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2
onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with Intel DL Boost and bfloat16 support
onednn_verbose,v1,info,gpu,runtime:none
onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,memory_descriptors
"""
REORDER = "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:blk,undef,src:f32::blocked:abcd::f0,attr-fpmath:f16,,1\n"
CONVOLUTION = (
    "onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,src:f32:a:blocked:aBcd16b::f0 "
    "wei:f32:a:blocked:ABcd16b16a::f0,attr-scratchpad:user{},alg:convolution_direct,mb16_ic32oc32_ih14oh12kh3,2.89087\n"
)
ISA = "Intel AVX-512 with Intel DL Boost and bfloat16 support"
PARALLEL = """ATen/Parallel:
\tat::get_num_threads() : 2
OpenMP 201511 (a.k.a. OpenMP 4.5)
\tomp_get_max_threads() : 2
Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64 architecture applications
\tmkl_get_max_threads() : 2
"""

AVX2 = "Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled processors"


@pytest.mark.parametrize(
    ("text", "isa", "implementation", "fpmath"),
    [
        (HEAD + CONVOLUTION.format(""), ISA, "jit:avx512_core", "strict"),
        (HEAD + CONVOLUTION.format(" attr-fpmath:bf16"), ISA, "jit:avx512_core", "bf16"),
        (HEAD, ISA, None, None),
        (CONVOLUTION.format(""), None, "jit:avx512_core", "strict"),  # the head is printed once in a process
        ("", None, None, None),
    ],
)
def test_parse_verbose(text, isa, implementation, fpmath):
    assert parse_verbose(text) == {"isa": isa, "implementation": implementation, "fpmath": fpmath}


def test_the_mode_of_another_primitive_does_not_count():
    assert parse_verbose(HEAD + REORDER + CONVOLUTION.format(""))["fpmath"] == "strict"


def torch_with(parallel_info="", mkl_there=True, mkldnn_there=True):
    def there(answer):
        return SimpleNamespace(is_available=lambda: answer)

    backends = SimpleNamespace(mkl=there(mkl_there), mkldnn=there(mkldnn_there))
    return SimpleNamespace(__config__=SimpleNamespace(parallel_info=lambda: parallel_info), backends=backends)


@pytest.mark.parametrize(("code", "dispatch"), [(AVX2, "native"), ("Intel(R) Architecture processors", "generic")])
def test_mkl(monkeypatch, code, dispatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(PARALLEL))
    monkeypatch.setattr(math_libraries, "_made_for", lambda: code)
    assert mkl() == {
        "available": True, "version": "2024.2", "max_threads": 2, "code": code, "dispatch": dispatch,
    }  # fmt: skip


def test_where_mkl_can_not_be_asked_nothing_is_verified(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(PARALLEL))
    monkeypatch.setattr(math_libraries.symbols, "libraries", lambda: ["/lib/libother.so"])
    found = mkl()
    assert "code" not in found
    assert found["not_verified"]["dispatch"] == MklSilent().to_json()


REAL = """
import json, sys, torch
from envkit.engines.base import PROJECT
from envkit.worker.evidence import math_libraries
from envkit.worker.evidence.capture import printed
def multiply():
    with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
        torch.mm(torch.ones(64, 64), torch.ones(64, 64))
print(json.dumps([math_libraries.mkl()["code"], printed(1, multiply)]))
"""


@pytest.mark.parametrize("preload", [False, True])
def test_it_is_what_mkl_prints_in_its_verbose_mode(preload):
    """Of a real one, with the code that it takes by itself and, on processors that are not Intel's, with other code."""
    environment = dict(os.environ)
    if preload:
        library = locate(search_folders()).get("mkl-dispatch")
        if library is None:
            pytest.skip("the kit has no such library for this architecture")
        environment["LD_PRELOAD"] = library["path"]
    result = subprocess.run(
        [sys.executable, "-c", REAL], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    )
    code, text = json.loads(result.stdout)
    if "MKL_VERBOSE" not in text:
        pytest.skip("this PyTorch is built without MKL")
    assert f" for Intel(R) 64 architecture {code}, Lnx " in text


def test_a_build_without_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(mkl_there=False, mkldnn_there=False))
    assert mkl() == {"available": False, "version": None, "max_threads": None}
    assert onednn() == {"available": False}


SERVES = """
import json, torch
from envkit.worker.evidence import math_libraries
print(json.dumps(math_libraries.blas()))
"""


@pytest.mark.parametrize(
    ("library", "variables", "settings"),
    [
        ("openblas", {"OMP_NUM_THREADS": "2"}, {"threading": "openmp", "OPENBLAS_NUM_THREADS": 2}),
        ("blis", {}, {"threading": "openmp", "BLIS_NUM_THREADS": 1}),
        ("blis", {"BLIS_NUM_THREADS": "3"}, {"threading": "openmp", "BLIS_NUM_THREADS": 3}),
    ],
)
def test_a_preloaded_blas_serves_products_and_says_how(library, variables, settings):
    found = locate(search_folders()).get(library) or pytest.skip(f"{library} is not installed here")
    environment = {"PATH": os.defpath, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "LD_PRELOAD": found["path"]}
    result = subprocess.run(
        [sys.executable, "-c", SERVES], cwd=PROJECT, env={**environment, **variables}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    blas = json.loads(result.stdout)
    assert (blas["implementation"], blas["library"]) == (library, found["path"])
    assert settings.items() <= blas["settings"].items()
    assert blas["settings"]["core"]
    assert blas["settings"]["version"]


def test_a_version_that_tells_less_leaves_gaps(monkeypatch):
    monkeypatch.setattr(math_libraries.symbols, "function", lambda name: None)
    assert {*math_libraries.openblas().values()} == {None}
    assert math_libraries.blis() == {"version": None, "core": None, "threading": "none", "BLIS_NUM_THREADS": None}
