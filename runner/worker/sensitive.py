"""Which environment variables can change how fast or how exactly training runs."""

from __future__ import annotations

PREFIXES = (
    # OpenMP runtimes and the math libraries that use them
    "OMP_", "KMP_", "GOMP_", "LIBOMP_", "MKL_", "OPENBLAS_", "BLIS_", "ONEDNN_", "DNNL_", "ATEN_",
    # allocators
    "MALLOC_", "JEMALLOC_", "_RJEM_", "TCMALLOC_", "MIMALLOC_", "mimalloc_", "PYTHONMALLOC", "THP_MEM_ALLOC",
    # frameworks and accelerators
    "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "NCCL_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_TF32_",
    # the loader
    "LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES",
    # a fixed seed would give all samples one layout of Python's dictionaries: lucky or unlucky, it looks like an effect
    "PYTHONHASHSEED",
)  # fmt: skip


def is_sensitive(name: str) -> bool:
    """Whether the worker must not inherit this variable from its caller."""
    return name.startswith(PREFIXES)
