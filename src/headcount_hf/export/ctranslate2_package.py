"""The package CTranslate2, told to multiply int8 without overflow.

On processors that are not Intel's it takes oneDNN, which adds products of int8 in 16 bits where the
processor lacks VNNI; there they overflow (PyTorch's issue 136746): translations by int8 are noise,
without a word. Of those processors all that have AVX-512 have VNNI. By MKL int8 was right on an AMD
without (a Zen 3). CTranslate2 reads what to take as it is imported, for all number formats, so this
module tells it before.
"""

import os
import platform
from types import ModuleType

import torch

from headcount.base.errors import EnvironmentFault
from headcount.base.packages import optional_package


def _is_narrow() -> bool:
    """Return whether this is an x86 processor without AVX-512."""
    capability = torch.backends.cpu.get_cpu_capability()
    return platform.machine() in ("x86_64", "AMD64") and not capability.startswith("AVX512")


if _is_narrow():
    os.environ.setdefault("CT2_USE_MKL", "1")


def load_ctranslate2() -> ModuleType:
    """Return the package; raises EnvironmentFault with the line that installs it."""
    return optional_package(
        "ctranslate2", "models of CTranslate2", "run: pip install -e '.[export]'"
    )


def refuse_overflow(package: ModuleType) -> None:
    """Raise EnvironmentFault where its sums of products of int8 would overflow.

    Of its ways to multiply on the CPU of an x86, only MKL has int16.
    """
    if _is_narrow() and "int16" not in package.get_supported_compute_types("cpu"):
        raise EnvironmentFault(
            "int8: expected CTranslate2 to multiply by MKL, as this processor has no AVX-512, "
            "found oneDNN, whose sums of int8 overflow there (CT2_USE_MKL is 0, or ctranslate2 "
            "was imported too early); set CT2_USE_MKL=1 in the environment, or take fp32 "
            "(engine ctranslate2)"
        )
