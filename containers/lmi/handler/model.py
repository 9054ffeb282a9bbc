"""The script that DJL Serving calls: the handler of the engine that the image has.

A config names this directory as `serving.script`. The directory is copied into the model package
unchanged, so everything that this file needs lies beside it. Each of AWS's images has one of the
two engines.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("fastertransformer"):
    from slipway_fastertransformer import handle
else:
    from slipway_deepspeed import handle

__all__ = ["handle"]
