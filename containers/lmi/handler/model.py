"""The script that DJL Serving calls: the handler of the engine that the image has.

A config names this directory as `serving.script`; it is copied into the model package as it is, so
that everything it needs lies beside this file. AWS's images have one of the two engines each.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .slipway_fastertransformer import handle
elif importlib.util.find_spec("fastertransformer"):
    from slipway_fastertransformer import handle
else:
    from slipway_deepspeed import handle

__all__ = ["handle"]
