"""Devices, processes and precision, through Lightning Fabric."""

import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from lightning_fabric import Fabric
from torch import Tensor

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # options of glibc's mallopt
KERNEL_CACHES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"  # oneDNN's own, and PyTorch's of it
KERNELS = 128  # kept in each: a step, forward or backward, has about 80 shapes, which all layers share


def launch(devices: int) -> Fabric:
    """Start or join the processes that train together, one per GPU. Under `torchrun`, its settings decide."""
    devices = int(os.environ.get("LOCAL_WORLD_SIZE", devices))
    strategy = "ddp" if int(os.environ.get("WORLD_SIZE", devices)) > 1 else "auto"
    nodes = int(os.environ.get("GROUP_WORLD_SIZE", 1))
    accelerator = "cuda" if torch.cuda.is_available() else "cpu"  # Apple's GPUs have no float64, which fits need
    fabric = Fabric(accelerator=accelerator, devices=devices, num_nodes=nodes, strategy=strategy)
    fabric.launch()
    if not fabric.is_global_zero:
        logging.getLogger("xsent_train").setLevel(logging.ERROR)  # one rank logs for all
    return fabric


def gather(fabric: Fabric, vectors: Tensor) -> Tensor:
    """The vectors of all ranks, rank after rank, with gradients: [L, b, D] to [L, ranks x b, D]."""
    if fabric.world_size == 1:
        return vectors
    ranks = fabric.all_gather(vectors, sync_grads=True)  # [ranks, L, b, D]
    assert isinstance(ranks, Tensor)
    if ranks.requires_grad:
        # Gradients are summed over the ranks in memory order.
        ranks.register_hook(Tensor.contiguous)  # type: ignore[no-untyped-call]
    return ranks.transpose(0, 1).flatten(1, 2)


def average(fabric: Fabric, number: Tensor) -> Tensor:
    """The mean of a number over all ranks, without its gradient."""
    mean = fabric.all_reduce(number.detach().clone(), reduce_op="mean")  # all_reduce works in place
    assert isinstance(mean, Tensor)
    return mean


def on_first_rank(fabric: Fabric, action: Callable[[], object]) -> None:
    """Run an action on the first rank while the others wait. If it fails, its error is raised on every rank."""
    failure: Exception | None = None
    if fabric.is_global_zero:
        try:
            action()
        except Exception as error:
            failure = error
    _raise_on_all(fabric, failure)


@contextmanager
def first_rank_first(fabric: Fabric) -> Iterator[None]:
    """Run the block on the first rank, then on the others. If the first one fails, all raise its error."""
    failure: Exception | None = None
    with fabric.rank_zero_first():  # waits without a time limit
        if fabric.is_global_zero:
            try:
                yield
            except Exception as error:
                failure = error
    _raise_on_all(fabric, failure)
    if not fabric.is_global_zero:
        yield


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the CPU and a device; `torch.manual_seed` takes milliseconds, as it formats a stack for each other kind."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def _raise_on_all(fabric: Fabric, failure: Exception | None) -> None:
    """Raise the error of the first rank, if any, on every rank."""
    if (failure := fabric.broadcast(failure)) is not None:
        raise failure


def precision(wanted: str) -> str:
    """The precision to train in; `auto` is bfloat16 if the hardware multiplies matrices in it."""
    if wanted != "auto":
        return wanted
    if torch.cuda.is_available():
        bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        bf16 = torch.cpu._is_avx512_bf16_supported()
    return "bf16-mixed" if bf16 else "32-true"


def limit_kernel_caches() -> None:
    """Make a CPU keep fewer compiled kernels. Has an effect only before the first one is compiled.

    oneDNN compiles each product of bfloat16 matrices for its shape, and two caches keep 1,024 of them, at 0.3 MB each.
    The shapes of a step hardly ever come again, because the number of its tokens is another one, so that memory grew by
    20 MB per step.
    """
    for cache in KERNEL_CACHES:
        os.environ.setdefault(cache, str(KERNELS))


def keep_freed_memory() -> None:
    """Make the C library keep freed memory instead of giving it back to the system.

    The gradient of the token table takes 100 MB. When it was allocated again at every step, page faults took 45% of the
    time.
    """
    call_glibc("mallopt", M_MMAP_MAX, 0)
    call_glibc("mallopt", M_TRIM_THRESHOLD, 2**31 - 1)


def return_large_tensors() -> None:
    """Make the C library give each freed tensor of 256 kB or more back to the system at once.

    Otherwise it keeps those of up to 32 MB, with gaps between them. Page faults make encoding a third slower.
    """
    call_glibc("mallopt", M_MMAP_THRESHOLD, 2**18)


def return_freed_memory() -> None:
    """Make the C library give freed memory back to the system, wherever it lies."""
    call_glibc("malloc_trim", 0)


def call_glibc(function: str, *numbers: int) -> None:
    """Call a function of the C library, if it is glibc; others lack these functions."""
    with suppress(OSError, AttributeError):
        getattr(ctypes.CDLL(None), function)(*numbers)
