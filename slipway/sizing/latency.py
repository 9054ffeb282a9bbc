"""How long a request takes on one copy of a model: a roofline with measured efficiencies.

One pass of the network over some tokens takes the sum of what its memory, its arithmetic and its
links take, or what the processor takes to launch its kernels, whichever is longer. A prompt is one
pass over its tokens. Each further token is a step: one pass over the tokens of all requests in the
batch, one of each.

In a closed loop of `concurrency` clients, every other request's prompt is computed once while a
request is answered. So a request takes `concurrency` prompts and its own steps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slipway.sizing.network import Network

Constants = Mapping[str, float]
"""The fitted numbers by name, as `facts/sizing.json` has them."""

# How sharply the longer of two overlapping times decides.
_SHARPNESS: Final = 4
# Passes through links in a layer: after attention, and after the feed-forward part.
_ALL_REDUCES: Final = 2
_HIDDEN_BYTES: Final = 2
# GPUs whose tensor cores compute no number of 8 or 4 bits: packed weights are unpacked first.
_UNPACKS: Final = ("NVIDIA A10G", "NVIDIA A100")


@dataclass(frozen=True)
class Gpu:
    """A row of `facts/gpus.json`: `flops` of bf16 a second, and the link `pcie` or `nvlink`."""

    product: str
    bytes_per_second: float
    flops: float
    link: str


@dataclass(frozen=True)
class Server:
    """One copy of an engine, `vllm` or `tgi`, spread over so many GPUs, all alike."""

    gpu: Gpu
    degree: int
    engine: str


@dataclass(frozen=True)
class Load:
    """Requests of a closed loop; the engine has not kept `new_tokens` of a prompt; None for all."""

    concurrency: int
    input_tokens: float
    output_tokens: float
    new_tokens: float | None = None


@dataclass(frozen=True)
class Times:
    """Seconds of one request: until the first token, from one to the next, until the last."""

    first_token: float
    per_token: float
    request: float


def request_times(network: Network, server: Server, load: Load, constants: Constants) -> Times:
    machine = _Machine(network, server, constants)
    batch, new = load.concurrency, load.new_tokens
    new = load.input_tokens if new is None else new
    context = load.input_tokens + load.output_tokens / 2
    step = machine.step(batch, context)
    overhead = constants["request_seconds"]
    request = overhead + machine.prompts(batch, new) + load.output_tokens * step
    first = overhead + machine.prompts(1, new) + step
    further = max(1.0, load.output_tokens - 1)
    return Times(first, max(0.0, request - first) / further, max(request, first))


@dataclass(frozen=True)
class _Machine:
    network: Network
    server: Server
    constants: Constants

    def step(self, batch: int, context: float) -> float:
        """Returns the seconds of one token of each request."""
        network, constants = self.network, self.constants
        # Fewer heads than GPUs are held more than once.
        parts = min(self.server.degree, network.key_value_heads)
        cache = batch * network.read_cache_bytes(context) / parts
        fixed = constants["step_seconds"] + constants["sequence_seconds"] * batch
        if batch > 1 and self.server.engine == "vllm":
            fixed += constants["batch_seconds"]
        return self._pass(batch, cache / (self._bandwidth * constants["cache_use"])) + fixed

    def prompts(self, batch: int, tokens: float) -> float:
        """Returns the seconds of prompts of so many new tokens each."""
        network = self.network
        flops = 2 * network.layers * network.attention_width * tokens * tokens * batch
        attention = flops / self.server.degree / self._flops
        return self._pass(batch * tokens, attention) if tokens else 0.0

    def _pass(self, tokens: float, attention: float) -> float:
        network, degree = self.network, self.server.degree
        weights = network.shared_bytes / degree / (self._bandwidth * self._packed("use"))
        if network.experts:
            read = network.touched(tokens) * network.expert_bytes / degree
            weights += read / (self._bandwidth * self._expert_use)
        compute = 2 * network.active_parameters * tokens / degree
        compute /= self._flops * self._packed("compute")
        gpu = weights + attention + compute + self._links(tokens)
        sharp = gpu**_SHARPNESS + self._launches**_SHARPNESS
        return float(sharp ** (1 / _SHARPNESS))

    @property
    def _bandwidth(self) -> float:
        gpu = self.server.gpu
        use = self.constants["bandwidth_use"] * self._of_gpu("bandwidth_use")
        return gpu.bytes_per_second * use

    @property
    def _flops(self) -> float:
        return self.server.gpu.flops * self.constants["compute_use"]

    @property
    def _expert_use(self) -> float:
        use = self.constants["expert_use"]
        if self._is_packed_in_four:
            use *= self.constants["mxfp4_use"]
            use *= self.constants["unpacked_mxfp4_use"] if self._unpacks else 1.0
        return use

    @property
    def _launches(self) -> float:
        """Seconds that the processor takes to launch the kernels of a pass."""
        constants, engine = self.constants, self.server.engine
        seconds = constants[f"launch_seconds_{engine}"]
        if engine == "tgi":
            seconds *= self._of_gpu("launch_seconds") * self._packed("launch")
        elif self.network.experts:
            seconds = constants["launch_seconds_experts"]
            if self._is_packed_in_four and self._unpacks:
                seconds *= constants["unpacked_mxfp4_launch"]
        return seconds * self.network.layers

    def _links(self, tokens: float) -> float:
        """Seconds of all all-reduces of a pass."""
        constants, degree = self.constants, self.server.degree
        if degree == 1:
            return 0.0
        size = tokens * self.network.width * _HIDDEN_BYTES
        if self.server.gpu.link == "pcie":
            # Without a link of their own, all GPUs send through the memory of the host.
            seconds = constants["pcie_seconds"] * math.log2(degree) / 2
            seconds += size * 2 * (degree - 1) / constants["pcie_bytes_per_second"]
        else:
            seconds = constants["nvlink_seconds"]
            seconds += size * 2 * (degree - 1) / degree / constants["nvlink_bytes_per_second"]
        return _ALL_REDUCES * self.network.layers * seconds

    def _of_gpu(self, name: str) -> float:
        return self.constants.get(f"{name} of {self.server.gpu.product}", 1.0)

    def _packed(self, name: str) -> float:
        return self.constants[f"gptq_{name}"] if self.network.kind[1] == "gptq" else 1.0

    @property
    def _is_packed_in_four(self) -> bool:
        return self.network.kind[1] == "mxfp4"

    @property
    def _unpacks(self) -> bool:
        return self.server.gpu.product in _UNPACKS
