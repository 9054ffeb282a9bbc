"""Builds a TensorRT engine from a step graph, for the GPU of this machine.

This is the only module that imports TensorRT to build. The network is strongly typed: its types are
the graph's, so an fp16 engine needs an fp16 graph. Names used here exist in TensorRT 10.4 to 11.1.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

import tensorrt as trt

from containers.serving.logs import log_event
from containers.tensorrt.engine_metadata import DECODE_PROFILE, PREFILL_PROFILE

_logger = logging.getLogger(__name__)

_TOKEN_INPUTS: Final = ("input_ids", "position_ids")
_MASK_INPUT: Final = "attention_mask"
_CACHE_PREFIX: Final = "past_key_values."


class EngineBuildError(Exception):
    """TensorRT refuses the graph or cannot build it; the message holds all of TensorRT's errors."""


@dataclass(frozen=True)
class EngineLimits:
    """The largest steps of an engine.

    Attributes:
        max_batch_size: most rows.
        max_input_tokens: most columns of a prefill.
        max_new_tokens: most tokens generated after a prompt of that length.
    """

    max_batch_size: int
    max_input_tokens: int
    max_new_tokens: int


class Range(NamedTuple):
    """Sizes of one dimension; the engine is fastest at the optimum."""

    minimum: int
    optimum: int
    maximum: int


@dataclass(frozen=True)
class StepSizes:
    """The range of each dimension in one optimisation profile."""

    batch: Range
    sequence: Range
    past: Range

    def of_input(self, name: str, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """Returns the minimum, optimum and maximum shape of an input of the step graph.

        Raises:
            EngineBuildError: the step graph has no such input.
        """
        if name in _TOKEN_INPUTS and len(shape) == 2:
            return list(zip(self.batch, self.sequence, strict=True))
        if name == _MASK_INPUT and len(shape) == 2:
            together = zip(self.sequence, self.past, strict=True)
            return list(zip(self.batch, map(sum, together), strict=True))
        if name.startswith(_CACHE_PREFIX) and len(shape) == 4 and shape[1] > 0 and shape[3] > 0:
            return [
                (batch, shape[1], past, shape[3])
                for batch, past in zip(self.batch, self.past, strict=True)
            ]
        raise EngineBuildError(
            f"the graph is not a step graph: it has an input {name} of shape {list(shape)}"
        )


def profiles(limits: EngineLimits) -> list[StepSizes]:
    """Returns the sizes of prefill and of decoding, in the order of their profiles' numbers.

    Both profiles have their optimum at a full batch, because batching is for throughput. A row
    alone is not much faster than a full batch, since a step reads all weights either way.
    """
    batch = Range(1, limits.max_batch_size, limits.max_batch_size)
    prompt = limits.max_input_tokens
    # The last new token is returned and never fed to the model.
    longest_past = prompt + limits.max_new_tokens - 1
    sizes = {
        PREFILL_PROFILE: StepSizes(batch, Range(1, prompt, prompt), Range(0, 0, 0)),
        DECODE_PROFILE: StepSizes(batch, Range(1, 1, 1), Range(1, prompt, longest_past)),
    }
    return [sizes[number] for number in sorted(sizes)]


@dataclass(frozen=True)
class BuiltEngine:
    """An engine that can be written to a file or opened.

    Attributes:
        plan: the serialised engine.
        timing_cache: measurements of the builder, for the next build; None if it has none.
    """

    plan: memoryview
    timing_cache: bytes | None


class MessageLog(trt.ILogger):  # type: ignore[misc, unused-ignore]  # untyped without tensorrt
    """Keeps TensorRT's errors, and writes them and its warnings to the container's log."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
        """Called by TensorRT, from any of its threads."""
        if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
            self.errors.append(msg)
        elif severity != trt.ILogger.Severity.WARNING:
            return
        log_event(_logger, logging.WARNING, "tensorrt_message", severity=severity.name, message=msg)


class ParsedGraph:
    """A graph as TensorRT's parser understood it.

    Args:
        graph: an ONNX file; its external data lies beside it.

    Raises:
        EngineBuildError: the parser refuses the graph; the message holds all its errors.
    """

    def __init__(self, graph: Path) -> None:
        self.log = MessageLog()
        self.builder = trt.Builder(self.log)
        self.network = self.builder.create_network(
            1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        )
        # The network refers to weights that the parser holds.
        self._parser = trt.OnnxParser(self.network, self.log)
        if not self._parser.parse_from_file(str(graph)):
            raise EngineBuildError(f"TensorRT cannot read {graph.name}: {self._findings()}")

    def _findings(self) -> str:
        errors = [self._parser.get_error(index) for index in range(self._parser.num_errors)]
        findings = [
            f"{error.node_name() or 'the graph'} ({error.node_operator() or 'no operator'}): "
            f"{error.desc()}"
            for error in errors
        ]
        # Some causes, such as missing weights, appear only in the log.
        return "; ".join(dict.fromkeys([*findings, *self.log.errors])) or "it gives no reason"


def build_engine(
    graph: Path,
    limits: EngineLimits,
    *,
    timing_cache: bytes = b"",
    configure: Callable[[trt.IBuilderConfig], None] | None = None,
) -> BuiltEngine:
    """Builds an engine with the profiles of `profiles`; takes minutes for a large model.

    Args:
        graph: a step graph; its external data lies beside it.
        limits: the largest steps, which bound the profiles.
        timing_cache: cache of an earlier build; a cache of another GPU or version is not used.
        configure: changes the builder's configuration last, for builders that must be told the GPU.

    Raises:
        EngineBuildError: the graph is refused, or no engine can be built from it on this GPU.
    """
    parsed = ParsedGraph(graph)
    config = parsed.builder.create_builder_config()
    for sizes in profiles(limits):
        _add_profile(parsed, config, sizes)
    _use_timing_cache(config, timing_cache)
    if configure is not None:
        configure(config)
    plan = parsed.builder.build_serialized_network(parsed.network, config)
    if plan is None:
        reasons = "; ".join(dict.fromkeys(parsed.log.errors)) or "it gives no reason"
        raise EngineBuildError(f"TensorRT cannot build an engine of {graph.name}: {reasons}")
    measured = config.get_timing_cache()
    return BuiltEngine(
        # It has the buffer protocol, which type information cannot express before Python 3.12.
        plan=memoryview(cast(bytes, plan)),
        timing_cache=None if measured is None else bytes(cast(bytes, measured.serialize())),
    )


def _add_profile(parsed: ParsedGraph, config: trt.IBuilderConfig, sizes: StepSizes) -> None:
    profile = parsed.builder.create_optimization_profile()
    for index in range(parsed.network.num_inputs):
        tensor = parsed.network.get_input(index)
        minimum, optimum, maximum = sizes.of_input(tensor.name, tuple(tensor.shape))
        profile.set_shape(tensor.name, minimum, optimum, maximum)
    if config.add_optimization_profile(profile) < 0:
        raise EngineBuildError(f"TensorRT refuses the profile {sizes}: {parsed.log.errors}")


def _use_timing_cache(config: trt.IBuilderConfig, serialised: bytes) -> None:
    for content in dict.fromkeys((serialised, b"")):
        cache = config.create_timing_cache(content)
        if cache is not None and config.set_timing_cache(cache, ignore_mismatch=False):
            return
        log_event(
            _logger,
            logging.WARNING,
            "timing_cache_not_used",
            message="it is not of this GPU and this version of TensorRT: all is timed anew"
            if content
            else "this builder keeps none",
        )
