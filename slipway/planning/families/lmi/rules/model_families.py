"""Rules about model families of LMI containers, and about defects of single images.

Some handlers refuse a family that they do not know; some images start and answer wrongly (facts:
lmi).
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.setup import LmiSetup


def family_is_supported(lmi: Lmi) -> Iterator[Problem]:
    """Refuses a model type that the handler has no code for, if it accepts no other."""
    setup, family = lmi.setup, lmi.model_type
    if family is None:
        return
    for row in setup.version.model_families:
        if row.handler != setup.handler or row.otherwise != "refused" or family in row.model_types:
            continue
        what = f"{setup.entry_point} of {setup.image}"
        if row.purpose == "smoothquant":
            if setup.serving.options.get("quantize") != "smoothquant":
                continue
            what += " with `quantize: smoothquant`"
        yield problem(
            Code.LMI_FAMILY,
            f"{what} takes no model of the family {lmi.config.model.family}",
            f"It takes {', '.join(row.model_types)}; choose another version or framework.",
            ("model", "family"),
        )


def answers_are_not_mixed(lmi: Lmi) -> Iterator[Problem]:
    """A batch in which everybody gets the first one's answer."""
    setup = lmi.setup
    if setup.serving.max_batch_size == 1:
        return
    for effect in _effects(setup, "mixed_batch_answers"):
        yield problem(
            Code.LMI_IMAGE_DEFECT,
            f"{setup.image} with batches of {setup.serving.max_batch_size}: {effect}",
            "Set `max_batch_size: 1`, or use another version.",
            ("serving", "max_batch_size"),
        )


def t5_is_not_in_fp16(lmi: Lmi) -> Iterator[Problem]:
    """Refuses T5 in fp16: it starts and answers, but writes worse text than in other precisions."""
    setup = lmi.setup
    if lmi.config.model.family != "t5" or setup.serving.dtype != "fp16":
        return
    # The engine's defect, so that Slipway's handler on it writes no better.
    ours = () if setup.ours is None else (setup.ours.replaces,)
    for effect in _effects(setup, "t5_fp16", *ours):
        yield problem(
            Code.LMI_IMAGE_DEFECT,
            f"T5 in fp16 on {setup.image}: {effect}",
            "Set `dtype: fp32` or `dtype: bf16`.",
            ("serving", "dtype"),
        )


def pytorch_backend_starts(lmi: Lmi) -> Iterator[Problem]:
    """Refuses `backend: pytorch` in images whose handler does not start with it."""
    setup = lmi.setup
    if setup.serving.options.get("backend") != "pytorch":
        return
    for effect in _effects(setup, "pytorch_backend"):
        yield problem(
            Code.LMI_IMAGE_DEFECT,
            f"`backend: pytorch` on {setup.image}: {effect}",
            "Remove it: an engine is built of the weights, or compile them ahead of time.",
            ("serving", "options", "backend"),
        )


def _effects(setup: LmiSetup, defect: str, *handlers: str) -> list[str]:
    """Returns what a defect of the image does, if its own handler or a further one has it."""
    having = (setup.handler, *handlers)
    return [d.effect for d in setup.version.defects if d.name == defect and d.handler in having]
