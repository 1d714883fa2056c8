"""Variables that no profile can set: they have programs run code, or look for it in a place that a file chooses.

A profile is about speed, and its author may be anybody. So none of these is a setting; who needs one sets it in the
shell, from where workers inherit it.
"""

from __future__ import annotations

from envkit.messages import Message
from envkit.profiles.limit_messages import PluginByPath, RunsCode
from envkit.worker.performance_variables import is_performance_variable

# By who reads them. ld.so(8); bash(1), "Shell Variables"; python(1) and its "Command line and environment".
_NAMES = frozenset({
    # programs that start others
    "PATH", "HOME", "SHELL", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSOPEN", "LESSCLOSE",
    # shells
    "BASH_ENV", "ENV", "ZDOTDIR", "FPATH", "CDPATH", "IFS", "SHELLOPTS", "BASHOPTS", "BASH_LOADABLES_PATH",
    "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4",
    # Python
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONBREAKPOINT",
    "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "PYTHON_PRESITE",
    "IPYTHONDIR", "MPLBACKEND", "MPLCONFIGDIR", "HF_MODULES_CACHE", "TORCH_HOME", "TORCH_EXTENSIONS_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    # other interpreters
    "PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "R_PROFILE", "R_PROFILE_USER",
    "R_ENVIRON", "R_ENVIRON_USER", "TCLLIBPATH", "PHPRC", "PHP_INI_SCAN_DIR",
    # compilers, which torch.compile starts
    "CC", "CXX", "CPP", "LD", "AR", "NVCC", "CUDACXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH",
    "ROCM_HOME", "HIP_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CCC_OVERRIDE_OPTIONS", "GCC_EXEC_PREFIX",
    "COMPILER_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "MAKEFLAGS", "MAKEFILES",
    "TRITON_PTXAS_PATH", "TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_OVERRIDE_DIR", "TRITON_LIBCUDA_PATH",
    "TRITON_PLUGIN_DIRS", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_CUOBJDUMP_PATH", "TRITON_NVDISASM_PATH",
    "TRITON_CUDART_PATH", "TRITON_CUPTI_LIB_PATH", "TRITON_CACHE_MANAGER", "TRITON_REMOTE_CACHE_BACKEND",
    "LLVM_PASS_PLUGIN_PATH", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CCACHE_PREFIX", "CCACHE_COMPILER",
    "TORCHINDUCTOR_CUTLASS_DIR", "TORCHINDUCTOR_CK_DIR", "TORCHINDUCTOR_CPP_MARCH", "TORCH_ADDR2LINE_BINARY",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD",
    # libraries that load others
    "GCONV_PATH", "LOCPATH", "OMP_TOOL_LIBRARIES", "CUDA_INJECTION32_PATH", "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION32_PATH", "NVTX_INJECTION64_PATH", "NCCL_CONF_FILE", "HSA_TOOLS_LIB", "ROCP_TOOL_LIB",
    "ROCP_TOOL_LIBRARIES", "UR_ADAPTERS_FORCE_LOAD", "UR_ADAPTERS_SEARCH_PATH",
    "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH", "VK_ICD_FILENAMES", "VK_LAYER_PATH",
    "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "FI_PROVIDER_PATH", "UCX_MODULE_DIR",
    "GTK_MODULES", "GIO_EXTRA_MODULES", "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH",
    # launchers of MPI and Slurm
    "OMPI_MCA_mca_base_component_path", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_launch_agent",
    "HYDRA_LAUNCHER_EXEC", "HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "SLURM_CONF",
    "OMPI_MCA_orte_rsh_agent", "PRTE_MCA_plm_rsh_agent", "PRTE_MCA_prte_launch_agent",
    "SLURM_TASK_PROLOG", "SLURM_TASK_EPILOG", "SLURM_PROLOG", "SLURM_EPILOG",
})  # fmt: skip
# All that begin so, but for those of the loader that say how, and not what, it loads. PyTorch and oneDNN load the
# library that an INTEL_ variable names (ittnotify). A container engine takes commands and mounts from its own.
PREFIXES = (
    "LD_", "DYLD_", "GIT_", "SSH_", "SUDO_", "XDG_", "PIP_", "UV_", "LUA_", "JUPYTER_", "INTEL_LIBITTNOTIFY",
    "INTEL_JIT_PROFILER", "COVERAGE_PROCESS_", "APPTAINER", "SINGULARITY",
)  # fmt: skip
OF_THE_LOADER = frozenset({"LD_BIND_NOW", "LD_BIND_NOT", "LD_HWCAP_MASK"})
# NCCL loads such a library by a name that the loader finds, or by its path.
PLUGINS = frozenset(
    {"NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN", "NCCL_GIN_PLUGIN"}
)


def problem(name: str, value: str) -> Message | None:
    """Return why a profile can't set a variable to this value, or None if it can."""
    if name in PLUGINS and "/" in value:
        return PluginByPath(name)
    if name in OF_THE_LOADER or not (name in _NAMES or name.startswith(PREFIXES)):
        return None
    return RunsCode(name, f"--keep-env {name}" if is_performance_variable(name) else None)
