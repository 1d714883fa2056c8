"""A machine's NVIDIA driver, as its library NVML answers: there is none where these tests run.

The functions and what they write to are those of the NVML API reference; the numbers are made up.
"""

from __future__ import annotations

from typing import Any

from envkit.messages import Message

UUIDS = ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-1d2c5a10-0000-1111-2222-333344445555")
NOT_SUPPORTED, NOT_FOUND = 3, 6  # nvmlReturn_t
WORKQUEUES = 1000  # CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG


class Library:
    """What ``ctypes.CDLL("libnvidia-ml.so.1")`` would give, with ``gpus`` GPUs.

    ``answers`` replaces, by function, what it writes; None is an answer that this GPU does not support. ``missing`` are
    functions that this driver does not have, ``init`` is what nvmlInit_v2 returns.
    """

    def __init__(self, gpus: int = 1, init: int = 0, missing: tuple[str, ...] = (), **answers: Any) -> None:
        self._uuids, self._init, self._missing = UUIDS[:gpus], init, missing
        self._answers = {
            "nvmlSystemGetDriverVersion": "580.95.05",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 118432,
            "nvmlDeviceGetTotalEnergyConsumption": 9_000_000_500,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
            "nvmlDeviceGetClockInfo": {1: 1980, 2: 2619},
            **answers,
        }

    def __getattr__(self, function: str) -> Any:
        if function in self._missing:
            raise AttributeError(function)
        return lambda *arguments: self._call(function, arguments)

    def _call(self, function: str, arguments: tuple[Any, ...]) -> int:  # noqa: PLR0911 - a return for each function
        match function:
            case "nvmlInit_v2":
                return self._init
            case "nvmlDeviceGetCount_v2":
                return written(arguments[0], len(self._uuids))
            case "nvmlDeviceGetHandleByIndex_v2":
                return written(arguments[1], arguments[0].value + 1)
            case "nvmlDeviceGetHandleByUUID":
                name = arguments[0].value.decode()
                return written(arguments[1], self._uuids.index(name) + 1) if name in self._uuids else NOT_FOUND
            case "nvmlDeviceGetUUID":
                return written(arguments[1], self._uuids[arguments[0].value - 1])
        answer = self._answers.get(function)
        if isinstance(answer, dict):  # by what is asked for
            answer = answer[arguments[1].value]
        if answer is None:
            return NOT_SUPPORTED
        return written(arguments[-2] if isinstance(answer, str) else arguments[-1], answer)


class Driver:
    """What ``ctypes.CDLL("libcuda.so.1")`` would give, as far as queues go.

    ``limit`` is the concurrency limit of the context's work queues. ``version`` is the CUDA that the driver is for, and
    None where it does not say. ``status`` is what cuCtxGetDevResource returns, 0 being success.
    """

    def __init__(self, limit: int = 8, version: int | None = 13010, context: int = 0x5555, status: int = 0) -> None:
        self._limit, self._version, self._context, self._status = limit, version, context, status

    def cuDriverGetVersion(self, version: Any) -> int:
        return NOT_SUPPORTED if self._version is None else written(version, self._version)

    def cuCtxGetCurrent(self, context: Any) -> int:
        return written(context, self._context)

    def cuCtxGetDevResource(self, context: Any, resource: Any, kind: Any) -> int:
        assert (context.value, kind.value) == (self._context, WORKQUEUES)
        resource._obj.concurrency_limit = self._limit
        return self._status


def written(to: Any, value: Any) -> int:
    """Write a result where C would, and report success."""
    if isinstance(value, str):
        to.value = value.encode()
    else:
        to._obj.value = value
    return 0


def accelerator(count: int = 1, problem: Message | None = None, **fields: Any) -> dict[str, Any]:
    """What ``envkit.worker.gpus.look`` says of a machine with so many GPUs that torch can use."""
    return {
        "torch_cuda": "13.0",
        "driver": "580.95.05",
        "driver_cuda": "13.0",
        "devices": [{"name": "NVIDIA H100 80GB HBM3", "uuid": uuid} for uuid in UUIDS[:count]],
        "usable": 0 if problem else count,
        "problem": problem and problem.to_json(),
        "by_setting": False,
        "interfaces": ["eth0", "lo"],
        **fields,
    }
