"""A first config of an image of the user's own."""

from typing import Any

from slipway.config.starters.starter import Answers, Starter
from slipway.facts.instances import Accelerator


def _serving(answers: Answers, _: Accelerator | None) -> dict[str, Any]:
    return {"image_uri": answers.own["image_uri"]}


STARTER = Starter(
    _serving,
    options=("image_uri",),
    required=lambda _: ("image_uri",),
    is_tried_with_a_sample=True,
)
