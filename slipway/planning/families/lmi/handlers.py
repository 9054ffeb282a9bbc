"""Slipway's own handlers for LMI, which `image: built` contains.

They are the files of containers/lmi/handler. The image has them on its PYTHONPATH, and the package
names the handler by its module. Every version of DJL Serving imports `option.entryPoint` as a
module if it is no path (djl_python/service_loader.py), and prefers it to any model.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from slipway.config.sections.serving.lmi import LmiServing
from slipway.facts.images import ImageFacts, frameworks, image, regions, versions
from slipway.planning.images import wanted_bases
from slipway.planning.plan import ImageBase


@dataclass(frozen=True)
class OurHandler:
    """A handler of containers/lmi/handler.

    Args:
        module: the value of `option.entryPoint`.
        replaces: the image's handler for the same engine, as in `LmiVersion.handlers`; defects of
            the engine are under its name.
        title: name of the engine in messages.
        options: keys of `option.KEY` that it reads, in addition to the server's own.
        older_versions: versions of the framework that it does not run in.
    """

    module: str
    replaces: str
    title: str
    dtypes: tuple[str, ...]
    options: frozenset[str]
    older_versions: frozenset[str] = frozenset()


_LIMITS = frozenset({"default_new_tokens", "dtype", "max_inputs", "max_new_tokens"})
_DTYPES = ("fp32", "fp16", "bf16", "int8")
OUR_HANDLERS: Mapping[str, OurHandler] = {
    "djl-deepspeed": OurHandler(
        "slipway_deepspeed",
        "deepspeed",
        "DeepSpeed",
        _DTYPES,
        _LIMITS
        | {"checkpoint", "enable_cuda_graph", "max_tokens", "task"}
        | {"tensor_parallel_degree", "trust_remote_code"},
        # Their server hands requests over one by one, in another form.
        older_versions=frozenset({"0.19.0", "0.20.0"}),
    ),
    "djl-fastertransformer": OurHandler(
        "slipway_fastertransformer",
        "fastertransformer",
        "FasterTransformer",
        _DTYPES,
        _LIMITS | {"pipeline_parallel_degree", "tensor_parallel_degree", "trust_remote_code"},
    ),
}
"""By framework; no image of another one has an engine that they are for."""


def our_handler(framework: str, version: str) -> OurHandler | None:
    """Returns the handler in Slipway's image of that framework and version, or None."""
    handler = OUR_HANDLERS.get(framework)
    return None if handler is None or version in handler.older_versions else handler


def brings_handler(serving: LmiServing) -> bool:
    """Returns whether the user's model.py or Slipway's handler answers, and not AWS's.

    A model.py beside an entry point has formatters for it.
    """
    is_handler = serving.script is not None and serving.entry_point is None
    return is_handler or serving.image == "built"


_REPOSITORY = "djl-inference"
_IMAGES_OF_LMI = "djl-"


def image_base(base: ImageFacts) -> ImageBase | None:
    """Returns AWS's image as a base; None where Slipway has no handler for it."""
    is_ours = our_handler(base.framework, base.version) is not None
    return ImageBase.of(base, base.tag, compiles=False) if is_ours else None


# There are eleven bases of gigabytes each, and most are never needed.
image_bases = partial(wanted_bases, image_base)


def compiler_images(region: str) -> Iterator[tuple[str, str]]:
    """Yields registry and repository of AWS's images of a region, which partition weights, too."""
    accounts = [
        image(framework, version, region).account
        for framework in frameworks()
        if framework.startswith(_IMAGES_OF_LMI) and region in regions()
        for version in versions(framework)
    ]
    for account in sorted({each for each in accounts if each is not None}):
        yield account, _REPOSITORY
