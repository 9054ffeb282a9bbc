"""Builds a TensorRT engine from a graph, for the GPU of this machine.

This is the only module that imports TensorRT to build. The network is strongly typed: its types are
the graph's, so an fp16 engine needs an fp16 graph. Names used here exist in TensorRT 10.4 to 11.1.
"""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import tensorrt as trt

from containers.serving.logs import log_warning
from containers.tensorrt.compile.profiles import EngineBuildError, Profile
from containers.tensorrt.stepping import (
    CANDIDATE_LOGITS,
    CANDIDATE_TOKENS,
    LOGITS,
    TEMPERATURES,
    TOTAL_WEIGHTS,
)


@dataclass(frozen=True)
class BuiltEngine:
    plan: memoryview  # the serialised engine
    timing_cache: bytes | None  # for the next build


class MessageLog(trt.ILogger):  # type: ignore[misc, unused-ignore]  # untyped without tensorrt
    """Keeps TensorRT's errors, and writes them and its warnings to the container's log."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    @property
    def said(self) -> str:
        return "; ".join(dict.fromkeys(self.errors)) or "it gives no reason"

    def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
        """Called by TensorRT, from any of its threads."""
        if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
            self.errors.append(msg)
        elif severity != trt.ILogger.Severity.WARNING:
            return
        log_warning("tensorrt_message", severity=severity.name, message=msg)


class ParsedGraph:
    """A graph, with its external data beside it, as TensorRT's parser understood it.

    An `EngineBuildError` holds all errors of the parser.
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
    profiles: Sequence[Profile],
    *,
    candidates: int = 0,
    timing_cache: bytes = b"",
) -> BuiltEngine:
    """Builds an engine; takes minutes for a large model.

    The profiles are in the order of their numbers. The engine finds the number of `candidates` in
    each row. A timing cache of another GPU or version is not used. An `EngineBuildError` says that
    the graph is refused, or that no engine can be built from it on this GPU.
    """
    try:
        return _built(graph, profiles, candidates, timing_cache)
    except BaseException as error:
        # The traceback would keep the builder until Python collects garbage. That may happen in
        # `MessageLog.log`, which TensorRT calls with a lock held. The deletion of a builder waits
        # for the same lock, for ever.
        traceback.clear_frames(error.__traceback__)
        raise


def _built(
    graph: Path, profiles: Sequence[Profile], candidates: int, timing_cache: bytes
) -> BuiltEngine:
    parsed = ParsedGraph(graph)
    if candidates:
        _add_candidates(parsed.network, candidates)
    config = parsed.builder.create_builder_config()
    for profile in profiles:
        _add_profile(parsed, config, profile)
    _use_timing_cache(config, timing_cache)
    plan = parsed.builder.build_serialized_network(parsed.network, config)
    if plan is None:
        raise EngineBuildError(
            f"TensorRT cannot build an engine of {graph.name}: {parsed.log.said}"
        )
    measured = config.get_timing_cache()
    return BuiltEngine(
        # It has the buffer protocol, which type information cannot express before Python 3.12.
        plan=memoryview(cast(bytes, plan)),
        timing_cache=None if measured is None else bytes(cast(bytes, measured.serialize())),
    )


def _add_candidates(network: trt.INetworkDefinition, count: int) -> None:
    """Adds the layers that find the likeliest tokens, after the logits.

    Sums and quotients are float32, whatever the type of the logits.
    """
    outputs = [network.get_output(index) for index in range(network.num_outputs)]
    logits = next((tensor for tensor in outputs if tensor.name == LOGITS), None)
    if logits is None:
        raise EngineBuildError(f"the graph is not a step graph: it has no output {LOGITS}")
    temperatures = network.add_input(TEMPERATURES, trt.DataType.FLOAT, (-1, 1, 1))
    vocabulary = 1 << 2  # the axis, as a set of bits
    scores = network.add_cast(logits, trt.DataType.FLOAT).get_output(0)
    likeliest = network.add_topk(scores, trt.TopKOperation.MAX, count, vocabulary)
    greatest = network.add_reduce(scores, trt.ReduceOperation.MAX, vocabulary, True).get_output(0)
    depths = network.add_elementwise(scores, greatest, trt.ElementWiseOperation.SUB).get_output(0)
    depths = network.add_elementwise(depths, temperatures, trt.ElementWiseOperation.DIV).get_output(
        0
    )
    weights = network.add_unary(depths, trt.UnaryOperation.EXP).get_output(0)
    total = network.add_reduce(weights, trt.ReduceOperation.SUM, vocabulary, True).get_output(0)
    for name, tensor in (
        (CANDIDATE_LOGITS, likeliest.get_output(0)),
        (CANDIDATE_TOKENS, likeliest.get_output(1)),
        (TOTAL_WEIGHTS, total),
    ):
        tensor.name = name
        network.mark_output(tensor)


def _add_profile(parsed: ParsedGraph, config: trt.IBuilderConfig, sizes: Profile) -> None:
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
        log_warning(
            "timing_cache_not_used",
            message="it is not of this GPU and this version of TensorRT: all is timed anew"
            if content
            else "this builder keeps none",
        )
