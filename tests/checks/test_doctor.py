"""Each check: a situation that it finds something in, and one just short of that."""

from __future__ import annotations

import json

import pytest
from envkit.advice.symptoms import Symptoms
from envkit.checks.doctor import SEVERITIES, diagnose, diagnose_process
from envkit.checks.doctor import profile_findings as profile_checks
from envkit.checks.doctor.finding import Finding, Situation
from envkit.checks.finding_messages import (
    FIX,
    WHY,
    CountedByMachine,
    CountedByMask,
    CountedByMkl,
    FewProcessesLeft,
    FixedAddresses,
    Gain,
    LittleGain,
    NoMend,
    StartWithoutSetarch,
    TooManyThreads,
    remedy,
)
from envkit.checks.profile_messages import InterfaceMissing, LeaveFewerOut, NoGpu
from envkit.profiles.environment import Environment
from envkit.rendering import text
from envkit.worker.measure.machine_load import Load
from envkit.worker.messages.evidence import UserLimit

FACTS = {
    "usable_cpus": 4, "physical_cores": 4, "numa_nodes": 1, "affinity_cpus": 4, "online_cpus": 4, "cpu_quota": None,
    "smt": False,
}  # fmt: skip
FINGERPRINT = {
    "architecture": "x86_64", "thp_enabled": "madvise", "governor": None, "frequency_driver": None, "hypervisor": None,
    "isa": ["avx2", "avx512f"],
}  # fmt: skip
MIB = 2**20


def environment(variables=None, preload=None, prefix=(), expect=None):
    return Environment("mine", "A test", variables or {}, preload or {}, prefix, expect or {}, "same")


def situation(evidence=None, load=None, facts=None, fingerprint=None, symptoms=None, kernel_cores=None, **profile):
    seen = ({**FACTS, **(facts or {})}, {**FINGERPRINT, **(fingerprint or {})})
    return Situation(
        *seen, environment(**profile), evidence, load, symptoms=symptoms,
        cores_measured=kernel_cores is not None, kernel_cores=kernel_cores,
    )  # fmt: skip


def load(busy=0.0, steal=0.0, swapped=0.0):
    return Load(3.0, busy, steal, swapped)


def sets(**variables):
    return {"variables": variables}


def host(**fingerprint):
    return {"fingerprint": fingerprint}


def on(*isa, **variables):
    return {**sets(**variables), **host(isa=[*isa])}


def arm(**variables):
    return {**sets(**variables), **host(architecture="aarch64", isa=[])}


def never_huge(**variables):
    return {**sets(**variables), **host(thp_enabled="never")}


def slowed(**seen):
    usual = {"seconds": 10.0, "cpus": 2.0, "system_share": 0.0, "faults_per_s": 0.0}
    return {"symptoms": Symptoms(**{**usual, **seen})}


def sees(probe, **items):
    return {"evidence": {probe: items}}


def one_core(threads, mask="3", usable=4):
    evidence = {"threads": {"masks": {mask: 4}}, "openmp": {"max_threads": threads}}
    return {"evidence": evidence, "facts": {"usable_cpus": usable}}


def runnable(threads):
    return {**sees("threads", runnable=threads), "facts": {"usable_cpus": 8}}


def runtimes(*paths, preload=None):
    return {**sees("openmp", mapped=list(paths)), "preload": preload or {}}


def remote(share, policy="default"):
    return sees("memory", remote_share=share, numa_policy=policy)


def numa_calls(allowed, **given):
    return {**sees("limits", numa_calls=allowed), **given}


def memory(peak, limit=1000 * MIB):
    return sees("limits", memory_bytes=limit, peak_memory_bytes=peak)


def siblings(threads, smt=True):
    return {**sees("openmp", max_threads=threads), "facts": {"physical_cores": 2, "smt": smt}}


def binds(name, value="x", hypervisor="QEMU", smt=False):
    return {**sets(**{name: value}), "fingerprint": {"hypervisor": hypervisor}, "facts": {"smt": smt}}


def wants_huge_pages(mode, **expect):
    return {"expect": expect or {"memory.huge_pages": "most"}, **host(thp_enabled=mode)}


def numactl(*options, **facts):
    return {"prefix": ("numactl", *options), "facts": facts}


# Code, severity, the situation with the fault, and those that are just short of it.
CASES = [
    ("too-many-threads", "stop", sets(OMP_NUM_THREADS="5"), [sets(OMP_NUM_THREADS="4")]),
    ("too-many-threads", "stop", sets(OMP_NUM_THREADS="5,2"), [sets(OMP_NUM_THREADS="4,2")]),
    (
        "too-many-threads", "warn", sees("openmp", max_threads=5),
        [sees("openmp", max_threads=4), sees("openmp", max_threads=None)],
    ),
    (
        "too-many-threads", "stop", {**sees("openmp", max_threads=5), **sets(OMP_NUM_THREADS="5")},
        [{**sees("openmp", max_threads=4), **sets(OMP_NUM_THREADS="5")}],
    ),
    ("too-many-threads", "stop", runnable(11), [runnable(10)]),
    (
        "pinned-to-one-core", "stop", one_core(4),
        [one_core(4, mask="2-3"), one_core(1), one_core(4, usable=1),
         {"evidence": {"threads": {"masks": {"2": 2, "3": 2}}, "openmp": {"max_threads": 4}}}],
    ),
    ("pinned-to-one-core", "stop", one_core(2, usable=2), [one_core(2, usable=1)]),
    ("pinned-to-one-core", "stop", sees("threads", masks={"0": 9}), [sees("threads", masks={"0,2": 9})]),
    (
        "workers-on-one-core", "stop", sees("children", on_one_cpu=2),
        [sees("children", on_one_cpu=1), {**sees("children", on_one_cpu=2), "facts": {"usable_cpus": 1}}],
    ),
    (
        "two-openmp-runtimes", "warn", runtimes("/a/libgomp.so.1", "/b/libiomp5.so"),
        [runtimes("/a/libgomp.so.1"),
         runtimes("/a/libgomp.so.1", "/b/libiomp5.so", preload={"intel-openmp": "/b/libiomp5.so"}),
         # preloaded by a link to it
         runtimes("/a/libgomp.so.1", "/usr/lib/llvm-14/lib/libomp.so.5", preload={"llvm-openmp": "/b/libomp.so.5"})],
    ),
    ("process-limit", "warn", sees("limits", processes_free=67), [sees("limits", processes_free=68)]),
    ("remote-memory", "warn", remote(0.2), [remote(0.19), remote(0.9, "interleave"), remote(None)]),
    (
        "numa-calls-refused", "warn", numa_calls(False, prefix=("/usr/bin/numactl", "--localalloc")),
        [numa_calls(False), *(numa_calls(seen, prefix=("numactl", "--localalloc")) for seen in (True, None))],
    ),
    ("numa-calls-refused", "warn", numa_calls(False, facts={"numa_nodes": 2}), []),
    (
        "numa-calls-refused", "warn",  # for one of two ranks, each with a node of its own
        numa_calls(False, facts={"machine_numa_nodes": 2}), [numa_calls(False, facts={"machine_numa_nodes": 1})],
    ),
    ("near-memory-limit", "warn", memory(900 * MIB), [memory(899 * MIB), memory(900 * MIB, None), memory(None)]),
    ("smt-siblings", "note", siblings(3), [siblings(2), siblings(5), siblings(3, smt=False)]),
    ("smt-siblings", "note", siblings(4), [siblings(2)]),
    (
        "page-faults", "note", slowed(faults_per_s=1_000.0, system_share=0.05),
        [slowed(faults_per_s=999.0, system_share=0.9), slowed(faults_per_s=90_000.0, system_share=0.049)],
    ),
    (
        "generic-matrix-code", "note", slowed(operators={"matrix": 0.1}, generic_matrix_code=True),
        [slowed(operators={"matrix": 0.09}, generic_matrix_code=True), slowed(generic_matrix_code=True),
         slowed(operators={"matrix": 0.9}, generic_matrix_code=False)],
    ),
    ("crowded-cpus", "note", slowed(waiting_share=0.1), [slowed(waiting_share=0.09), slowed(waiting_share=None)]),
    ("huge-pages-off", "stop", wants_huge_pages("never"), [wants_huge_pages("madvise"), wants_huge_pages(None)]),
    (
        "huge-pages-off", "stop", {**wants_huge_pages("madvise"), **sees("memory", thp_refused=True)},
        [{**wants_huge_pages("madvise"), **sees("memory", thp_refused=False)}, sees("memory", thp_refused=True)],
    ),
    ("huge-pages-off", "stop", wants_huge_pages("never"), [{"fingerprint": {"thp_enabled": "never"}}]),
    (
        "huge-pages-off", "stop", wants_huge_pages("never", **{"torch.huge_page_tensors": True}),
        [wants_huge_pages("never", **{"torch.huge_page_tensors": False})],
    ),
    (
        "huge-pages-off", "stop", never_huge(MALLOC_CONF="narenas:1,thp:always"),
        [sets(MALLOC_CONF="thp:always"), never_huge(MALLOC_CONF="metadata_thp:auto,thp:default")],
    ),
    (
        "huge-pages-off", "stop", never_huge(GLIBC_TUNABLES="glibc.malloc.hugetlb=1:glibc.malloc.perturb=0"),
        [sets(GLIBC_TUNABLES="glibc.malloc.hugetlb=1"), never_huge(GLIBC_TUNABLES="glibc.malloc.hugetlb=0")],
    ),
    (
        "hidden-topology", "note", binds("OMP_PROC_BIND"),
        [binds("OMP_PROC_BIND", hypervisor=None), binds("OMP_PROC_BIND", smt=True), binds("OMP_DYNAMIC")],
    ),
    (
        "isa-above-cpu", "warn", sets(ONEDNN_MAX_CPU_ISA="avx512_core_amx"),
        [sets(ONEDNN_MAX_CPU_ISA="avx512_core_vnni"), sets(ONEDNN_MAX_CPU_ISA="avx2"), sets(ONEDNN_MAX_CPU_ISA="all"),
         on("avx2", "avx512f", "amx_bf16", ONEDNN_MAX_CPU_ISA="avx512_core_amx"),
         arm(ONEDNN_MAX_CPU_ISA="avx512_core_amx"),
         # as the kernel tells of a processor that has all of it
         on("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16", ONEDNN_MAX_CPU_ISA="avx10_1_512_amx_fp16")],
    ),
    (
        "isa-above-cpu", "warn", sets(DNNL_MAX_CPU_ISA="AVX512_CORE_BF16"),
        [on("avx2", "avx512f", "avx512_bf16", DNNL_MAX_CPU_ISA="AVX512_CORE_BF16")],
    ),
    (
        "isa-above-cpu", "warn", sets(ONEDNN_MAX_CPU_ISA="avx10_1_512"),
        [on("avx2", "avx512f", "avx512_fp16", ONEDNN_MAX_CPU_ISA="avx10_1_512")],
    ),
    (
        "isa-already-the-best", "warn", on("avx2", ONEDNN_MAX_CPU_ISA="AVX2"),
        [sets(ONEDNN_MAX_CPU_ISA="AVX2"), on("avx2", ONEDNN_MAX_CPU_ISA="AVX"), arm(ONEDNN_MAX_CPU_ISA="AVX2")],
    ),
    (
        "isa-already-the-best", "warn", on("avx2", ONEDNN_CPU_ISA_HINTS="prefer_ymm"),
        [sets(ONEDNN_CPU_ISA_HINTS="prefer_ymm")],
    ),
    (
        "of-x86-alone", "warn", arm(ONEDNN_MAX_CPU_ISA="AVX2"),
        [sets(ONEDNN_MAX_CPU_ISA="AVX2"), arm(ONEDNN_MAX_CPU_ISA="sve_256")],
    ),
    ("of-x86-alone", "warn", arm(ONEDNN_CPU_ISA_HINTS="prefer_ymm"), [sets(ONEDNN_CPU_ISA_HINTS="prefer_ymm")]),
    (
        "of-x86-alone", "warn",
        arm(GLIBC_TUNABLES="glibc.malloc.tcache_count=9:glibc.cpu.x86_non_temporal_threshold=1048576"),
        [sets(GLIBC_TUNABLES="glibc.cpu.x86_non_temporal_threshold=1048576"),
         arm(GLIBC_TUNABLES="glibc.malloc.tcache_count=9")],
    ),
    (
        "fpmath-above-cpu", "warn", sets(ONEDNN_DEFAULT_FPMATH_MODE="bf16"),
        [sets(ONEDNN_DEFAULT_FPMATH_MODE="strict"), sets(ONEDNN_DEFAULT_FPMATH_MODE="any"),
         on("amx_bf16", ONEDNN_DEFAULT_FPMATH_MODE="bf16"), arm(ONEDNN_DEFAULT_FPMATH_MODE="bf16")],
    ),
    (
        "fpmath-above-cpu", "warn", sets(DNNL_DEFAULT_FPMATH_MODE="f16"),
        # whether a CPU computes in tf32 is nowhere to be read
        [on("avx512_fp16", DNNL_DEFAULT_FPMATH_MODE="f16"), sets(DNNL_DEFAULT_FPMATH_MODE="tf32")],
    ),
    (
        "numa-node-missing", "stop", numactl("--cpunodebind=1", "--localalloc"),
        [numactl("--cpunodebind=0"), numactl("--interleave=all"), {"prefix": ("nice",)},
         numactl("--cpunodebind=1", numa_nodes=2), numactl("--interleave=0,1", numa_nodes=1, machine_numa_nodes=2),
         numactl("--membind=1", numa_nodes=1, memory_nodes=2)],
    ),
    (
        "numa-node-missing", "stop", {**numactl(numa_nodes=2), "prefix": ("/usr/bin/numactl", "-m0-2")},
        [numactl("-m0-1", numa_nodes=2)],
    ),
    ("hidden-topology", "note", binds("KMP_AFFINITY"), [binds("KMP_BLOCKTIME")]),
    (
        "cores-differ", "note", {**binds("KMP_AFFINITY"), "kernel_cores": 8},
        [binds("KMP_AFFINITY", hypervisor=None), {**binds("KMP_BLOCKTIME"), "kernel_cores": 8}],
    ),
    (
        "aten-above-cpu", "stop", on(ATEN_CPU_CAPABILITY="avx2"),
        [on("avx2", ATEN_CPU_CAPABILITY="avx2"), on(ATEN_CPU_CAPABILITY="default"), arm(ATEN_CPU_CAPABILITY="avx2")],
    ),
    (
        "aten-above-cpu", "stop", on("avx2", ATEN_CPU_CAPABILITY="avx512"),
        [on("avx2", "avx512f", ATEN_CPU_CAPABILITY="avx512")],
    ),
    ("other-load", "warn", {"load": load(busy=0.4)}, [{"load": load(busy=0.39)}]),
    ("steal", "warn", {"load": load(steal=0.12)}, [{"load": load(steal=0.11)}]),
    ("swapping", "warn", {"load": load(swapped=1.0)}, [{"load": load()}]),
    (
        "governor", "warn", host(governor="powersave", frequency_driver="acpi-cpufreq"),
        [host(governor="performance", frequency_driver="acpi-cpufreq"),
         *(host(governor="powersave", frequency_driver=driver) for driver in ("intel_pstate", "amd-pstate-epp"))],
    ),
    ("fixed-addresses", "warn", host(aslr="off"), [host(aslr="full"), host(aslr="partial"), host(aslr=None)]),
    ("fixed-addresses", "warn", host(aslr="off for this process"), [{}]),
    ("small-shm", "note", sees("limits", shm_bytes=512 * MIB - 1), [sees("limits", shm_bytes=512 * MIB)]),
    (
        "store-bypass-off", "warn", sees("limits", store_bypass="thread force mitigated"),
        [sees("limits", store_bypass=state) for state in ("vulnerable", "thread vulnerable", "not vulnerable", None)],
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(profile_checks, "GPU_DEVICES", (tmp_path / "nvidiactl", tmp_path / "kfd"))


@pytest.mark.parametrize(
    ("code", "severity", "fault", "fine"), CASES, ids=lambda case: case if isinstance(case, str) else ""
)
def test_a_check_finds_its_fault_and_nothing_short_of_it(code, severity, fault, fine):
    (finding,) = diagnose(situation(**fault))
    assert (finding.code, finding.severity) == (code, severity)
    assert all((finding.seen, finding.why, finding.fix))
    for short in fine:
        assert [one.code for one in diagnose(situation(**short)) if one.code == code] == []


def test_nothing_is_found_in_a_situation_without_fault():
    evidence = {
        "openmp": {"max_threads": 4, "mapped": ["/a/libgomp.so.1"]},
        "threads": {"masks": {"0-3": 6}},
        "memory": {"remote_share": 0.0, "numa_policy": "default"},
        "limits": {"processes_free": None, "memory_bytes": None, "peak_memory_bytes": MIB, "shm_bytes": 2**31,
                   "numa_calls": True},
    }  # fmt: skip
    assert diagnose(situation(evidence, load(0.01), variables={"OMP_NUM_THREADS": "4"})) == []


@pytest.mark.parametrize("evidence", [None, {}, {"openmp": {"error": "OSError: no"}, "threads": None}])
def test_what_was_not_looked_at_is_no_finding(evidence):
    assert diagnose(situation(evidence)) == []
    assert diagnose(Situation(FACTS, FINGERPRINT)) == []


@pytest.mark.parametrize("name", ["NCCL_DEBUG", "CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG"])
def test_variables_for_a_gpu_that_is_not_there(name, tmp_path):
    (finding,) = diagnose(situation(**sets(**{name: "1"})))
    assert (finding.code, finding.severity) == ("no-gpu", "warn")
    assert finding.seen == NoGpu((name,))
    (tmp_path / "kfd").touch()
    assert diagnose(situation(**sets(**{name: "1"}))) == []


def test_the_quota_and_the_mask_are_named():
    facts = {"usable_cpus": 1, "affinity_cpus": 8, "cpu_quota": 1.5}
    (finding,) = diagnose(situation({"openmp": {"max_threads": 8}}, facts=facts))
    assert finding.seen == TooManyThreads(threads=8, usable=1, mask=8, quota=1.5)
    assert text(finding.seen) == "8 OpenMP threads for 1 usable CPU (a mask of 8 and a quota of 1.5)"


def by_torch(rule, threads=8, **others):
    seen = {"num_threads": threads, "threads_rule": rule, "version": "2.13.0"}
    return {"openmp": {"max_threads": threads}, "torch": seen, "variables": {"sensitive": {}},
            "cpu_use": {"machine_cores": 8, "cores": 4, "ranks": 1}, **others}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "affinity", "default"),
    [
        ("machine", 4, CountedByMachine("2.13.0")),
        ("affinity", 8, CountedByMask("2.13.0")),
        ("mkl", 8, CountedByMkl()),
        ("mkl", 4, None),  # more than MKL counts: the program has set the number
        ("affinity", 4, None),
        (None, 8, None),
    ],
)
def test_pytorch_s_rule_is_named_where_its_own_number_is_too_large(rule, affinity, default):
    facts = {"affinity_cpus": affinity, "cpu_quota": 4.0}
    (finding,) = diagnose(situation(by_torch(rule), facts=facts))
    assert finding.seen == TooManyThreads(8, 4, affinity, 4.0, default)


def test_it_is_not_named_where_a_variable_or_the_program_sets_the_number():
    of_variable = by_torch("machine", variables={"sensitive": {"OMP_NUM_THREADS": "8"}})
    for evidence in (of_variable, by_torch("machine", threads=9)):
        (finding,) = diagnose(situation(evidence))
        assert finding.seen.default is None


def test_what_was_asked_for_is_not_said_again_once_it_was_seen():
    found = diagnose(situation({"openmp": {"max_threads": 9}}, **sets(OMP_NUM_THREADS="9")))
    assert [one.code for one in found] == ["too-many-threads"]


def test_the_costliest_comes_first():
    found = diagnose(
        situation(
            {"openmp": {"max_threads": 9}, "limits": {"shm_bytes": MIB}},
            load(busy=4.0, steal=1.0, swapped=1.0), variables={"OMP_NUM_THREADS": "9", "OMP_PROC_BIND": "close"},
            fingerprint={"hypervisor": "QEMU"}, **slowed(faults_per_s=1e6, system_share=1.0),
        )
    )  # fmt: skip
    assert [one.severity for one in found] == ["stop", "warn", "warn", "warn", "note", "note", "note"]
    assert sorted(found, key=lambda one: SEVERITIES.index(one.severity)) == found


def test_a_process_is_diagnosed_by_its_evidence_alone():
    evidence = {"limits": {"processes_free": 1, "shm_bytes": MIB}}
    spoilt = situation(evidence, load(busy=4.0), **wants_huge_pages("never"))
    limit = UserLimit(40, 39)
    limited = {**evidence, "limits": {**evidence["limits"], "processes_limit": limit.to_json()}}
    (named,) = [one.seen for one in diagnose(situation(limited)) if one.code == "process-limit"]
    assert named == FewProcessesLeft(1, limit)
    assert {one.code for one in diagnose(spoilt)} == {"process-limit", "small-shm", "other-load", "huge-pages-off"}
    assert [one.code for one in diagnose_process(spoilt)] == ["process-limit"]


@pytest.mark.parametrize(("others", "found"), [(["/usr/lib/libjemalloc.so.2"], ["mixed-versions"]), ([], [])])
def test_two_versions_of_what_is_preloaded(others, found):
    libraries = {
        "jemalloc": {"path": "/kit/libjemalloc.so.2", "others": others},
        "tcmalloc": {"path": "/kit/libtcmalloc.so.4", "others": ["/usr/lib/libtcmalloc.so.4"]},  # not preloaded
    }
    wanted = environment(preload={"jemalloc": "/kit/libjemalloc.so.2"})
    seen = Situation(FACTS, FINGERPRINT, wanted, libraries=libraries)
    assert [finding.code for finding in diagnose(seen)] == found


@pytest.mark.parametrize(
    ("aslr", "fix"), [("off", remedy("fixed-addresses")), ("off for this process", StartWithoutSetarch())]
)
def test_fixed_addresses_are_mended_where_they_were_fixed(aslr, fix):
    (finding,) = diagnose(situation(fingerprint={"aslr": aslr}))
    assert finding.seen == FixedAddresses(aslr)
    assert finding.fix == fix


def seen_gpus(*uuids):
    return {"devices": [{"name": "a GPU", "uuid": uuid} for uuid in uuids], "interfaces": ["eth0", "lo"]}


@pytest.mark.parametrize(
    ("name", "there", "missing", "code"),
    [
        ("CUDA_VISIBLE_DEVICES", ["1", "GPU-b"], ["2", ""], "gpu-missing"),
        ("NCCL_SOCKET_IFNAME", ["eth", "=eth0", "ib,lo", "^docker,lo", "^=eth,lo"],
         ["^eth,lo", "^=eth0,lo", "=eth", "ib,ens"], "interface-missing"),
    ],
)  # fmt: skip
def test_gpus_and_interfaces_that_are_named_and_not_there(name, there, missing, code):
    for value in (*there, *missing):
        wanted = environment({name: value})
        seen = Situation(FACTS, FINGERPRINT, wanted, accelerator=seen_gpus("GPU-aa", "GPU-bb"))
        found = [(one.code, one.severity) for one in diagnose(seen)]
        assert found == ([(code, "stop")] if value in missing else []), value
        # which alone is known where they were not looked for
        assert {one.code for one in diagnose(Situation(FACTS, FINGERPRINT, wanted))} == {"no-gpu"}


def test_without_a_network_leaving_out_the_loopback_leaves_nothing():
    seen = {**seen_gpus("GPU-aa"), "interfaces": ["lo"]}
    variables = {"NCCL_SOCKET_IFNAME": "^docker,lo"}
    (finding,) = diagnose(Situation(FACTS, FINGERPRINT, environment(variables), accelerator=seen))
    assert finding.seen == InterfaceMissing("^docker,lo", ("lo",))
    assert finding.fix == LeaveFewerOut()


def test_a_machine_without_network_interfaces():
    seen = {**seen_gpus("GPU-aa"), "interfaces": []}
    (finding,) = diagnose(Situation(FACTS, FINGERPRINT, environment({"NCCL_SOCKET_IFNAME": "eth"}), accelerator=seen))
    assert finding.seen == InterfaceMissing("eth")


@pytest.mark.parametrize("vendor", ["GenuineIntel", "AuthenticAMD"])
def test_a_slow_training_is_told_of_no_profile_that_does_not_apply(vendor):
    """Of what keeps memory, a profile with MKL's other code is expected to gain the most where that is of use."""
    seen = slowed(faults_per_s=90_000.0, system_share=0.3, operators={"matrix": 0.4}, generic_matrix_code=True)
    found = {one.code: one.fix for one in diagnose(situation(facts={"cpu_vendor": vendor}, **seen))}
    if vendor == "AuthenticAMD":
        assert found["page-faults"].profile.endswith("-mkl")
        assert found["generic-matrix-code"].profile.endswith(("-mkl", "mkl-native"))
        assert all(isinstance(one, Gain | LittleGain) for one in found.values())
    else:
        assert isinstance(found["page-faults"], Gain)
        assert found["page-faults"].profile.endswith("-retain")
        assert found["generic-matrix-code"] == NoMend()


def test_each_code_of_a_finding_has_a_reason_and_a_fix():
    codes = {*WHY, *FIX}
    # the reason is what the worker printed
    assert {code for code in codes if not WHY.get(code)} == {"worker-failed"}
    # these have a message
    assert {code for code in codes if not FIX.get(code)} == {
        "few-cpus", "numa-node-missing", "ranks-only", "too-few-threads", "would-be-ignored",
    }  # fmt: skip


def test_a_finding_survives_json():
    for _, _, fault, _ in CASES:
        for finding in diagnose(situation(**fault)):
            assert Finding.of_json(json.loads(json.dumps(finding.to_json()))) == finding


@pytest.mark.parametrize(
    ("variables", "wrong"),
    [
        ({"OMP_NUM_THREADS": "all"}, ["OMP_NUM_THREADS"]),
        ({"OMP_NUM_THREADS": "1.0", "MKL_NUM_THREADS": "two"}, ["OMP_NUM_THREADS", "MKL_NUM_THREADS"]),
        ({"OMP_NUM_THREADS": ""}, ["OMP_NUM_THREADS"]),  # the runtimes complain of it
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=lots"}, ["GLIBC_TUNABLES"]),
        ({"OMP_NUM_THREADS": "4,2", "MALLOC_CONF": "", "OMP_SCHEDULE": "static,4", "OMP_UNHEARD_OF": "x"}, []),
        ({"OMP_NUM_THREADS": "$OMP_NUM_THREADS"}, []),  # of a kept variable a record has the name
    ],
)
def test_values_that_no_library_reads(variables, wrong):
    seen = situation(evidence={"variables": {"sensitive": variables}})
    found = [one.seen for one in diagnose(seen) if one.code == "ignored-value"]
    assert [one.variable for one in found] == wrong


def test_a_profile_s_own_value_is_no_finding_it_is_refused_before():
    given = {"OMP_NUM_THREADS": "all"}
    seen = Situation(FACTS, FINGERPRINT, environment(given), {"variables": {"sensitive": given}})
    assert "ignored-value" not in [one.code for one in diagnose(seen)]
