"""Names that the worker gives to what it measures. Reports show them, and documents have them as keys."""

from __future__ import annotations

# The phases of a training step.
PHASE_NAMES = ("wait for input", "copy to device", "forward", "loss", "backward", "optimizer step")
# The forward pass among the events of PyTorch's profiler.
FORWARD_PASS = "envkit: forward pass"
# The digest of a network's weights after the training.
FINAL_WEIGHTS = "weights at the end"
# NvmlClocksEventReasons: why a GPU's clock is not the highest.
HELD_BACK = {
    0x001: "idle",
    0x002: "applications clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clocks",
}
# Facts of a machine.
ASLR_OFF_HERE = "off for this process"
UNKNOWN_HYPERVISOR = "a virtual machine of unknown make"
# The numbers that a metric reads.
STEP_TIME, LOSS = "a step's time", "a loss"
