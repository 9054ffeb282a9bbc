"""The section that `slipway init` writes."""

from slipway.families import Starter

STARTER = Starter(lambda *_: {"version": "1.0.0"}, is_tried_with_a_sample=True)
