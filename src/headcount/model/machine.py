"""Device, threads and number format of a run."""

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from headcount.base.errors import EnvironmentFault, UserError, lacks_memory
from headcount.model.gpu_slots import take_slot

_BF16 = ("avx512_bf16", "amx_bf16", "bf16")  # names of the ability on x86 and on ARM

# Width of a model from which an update in bf16 takes at most two thirds of the time in fp32, by
# ability, the fastest first. Measured: with AMX 0.66 of the time at 128 and 0.95 at 96; with
# AVX-512 on a Zen 5 0.60 at 256, on a Zen 4 no gain at 128. ARM's `bf16` was never measured.
_WIDTHS = {"amx_bf16": 128, "avx512_bf16": 256}
_GPU_WIDTH = 512  # assumed, as no GPU was at hand


def pick_device(wanted: str) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda`, of several GPUs by job slot or rank."""
    if wanted not in ("cpu", "cuda", "auto"):
        raise UserError(f"device: expected cpu, cuda or auto, found {wanted!r}")
    if wanted != "cpu":
        take_slot()
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise EnvironmentFault(
            "device: expected a GPU that torch can use, found none; "
            "install a CUDA build of torch, or set device: auto"
        )
    if wanted == "cpu" or not available:
        return torch.device("cpu")
    local = os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", 0))  # torchrun's, srun's
    place = int(local) % torch.cuda.device_count()
    torch.cuda.set_device(place)
    return torch.device("cuda", place)


@contextmanager
def batches_of(section: str, tokens: int) -> Iterator[None]:
    """Return a context for batches of `tokens`, the `batch_tokens` of a section of settings."""
    try:
        yield
    except (MemoryError, RuntimeError) as fault:
        if not lacks_memory(fault):
            raise
        raise EnvironmentFault(
            f"out of memory with {section}.batch_tokens {tokens} (flag --batch-tokens); lower it, "
            f"such as to {max(tokens // 2, 1)}, or take a machine with more memory"
        ) from fault


def use_threads(threads: int) -> None:
    """Set the number of threads of torch. The last bits of sums depend on it."""
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    # glibc reuses the memory of freed tensors, which saves a tenth of a step. All threads share one
    # heap, since the heap of another thread ends at 64 MB.
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8
        libc.mallopt(mmap_max, 0)  # large tensors are on the heap too
        libc.mallopt(arena_max, 1)
        libc.mallopt(trim_threshold, (1 << 31) - 1)
        libc.mallopt(top_pad, 64 << 20)


def _capabilities() -> Mapping[str, Any]:
    """Return the CPU's instruction sets. An old torch lists none, so `auto` is fp32 there."""
    return getattr(torch.cpu, "get_capabilities", dict)()


def warn_of_slow_format(precision: str, device: torch.device) -> None:
    """Warn on standard error if bf16 is to be used on a CPU without bf16 arithmetic."""
    able = _capabilities()
    if precision == "bf16" and device.type == "cpu" and able and not any(map(able.get, _BF16)):
        warning = "this CPU has no bf16 arithmetic, so bf16 is many times slower than fp32"
        print(f"precision: {warning}", file=sys.stderr, flush=True)


def pick_format(wanted: str, device: torch.device, width: int) -> str:
    """Return `fp32` or `bf16` as wanted, or for `auto` by processor and width `d_model` alone."""
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        least = _GPU_WIDTH if torch.cuda.get_device_capability(device) >= (8, 0) else None
    else:
        able = _capabilities()
        least = next((least for name, least in _WIDTHS.items() if able.get(name)), None)
    return "bf16" if least and width >= least else "fp32"


def number_format(precision: str, device: torch.device) -> AbstractContextManager:
    """Return a context for products in `fp32` or `bf16`. Raises ValueError for another name."""
    if precision not in ("fp32", "bf16"):
        raise ValueError(f"number format: expected fp32 or bf16, found {precision!r}")
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
