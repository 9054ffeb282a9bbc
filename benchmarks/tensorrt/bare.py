"""The bare decode loop: the container's computation, without a server around it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession

Decode = Callable[[Sequence[int], int], Sequence[int]]
"""Takes a prompt's tokens and a number of new tokens; returns the new tokens."""


def open_decode_loop(model_directory: Path, threads: int) -> Decode:
    """Loads a model as the container does; returns its decode loop for one greedy prompt."""
    config = read_config(model_directory)
    session = OnnxRuntimeSession(model_directory, config, intra_op_threads=threads)

    def decode(prompt: Sequence[int], new_tokens: int) -> Sequence[int]:
        [[tokens]] = generate(
            session, [Prompt(tuple(prompt), new_tokens)], eos_token_ids=config.eos_token_ids
        )
        return tokens

    return decode
