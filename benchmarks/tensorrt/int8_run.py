"""Times one system of `int8`, in a process of its own."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.execution import answer_call

SYSTEMS = ("fp32", "int8", "ctranslate2")
_TEXTS, _PROMPT_TOKENS, _NEW_TOKENS = 10, 12, 30
_SEED = 1


def _prompts(vocabulary: int) -> list[list[int]]:
    # Of an experiment, not of a secret.
    draw = random.Random(_SEED)  # noqa: S311
    return [[draw.randrange(vocabulary) for _ in range(_PROMPT_TOKENS)] for _ in range(_TEXTS)]


def _container(folder: Path, threads: int, prompts: list[list[int]]) -> Callable[[], Any]:
    from containers.tensorrt.generation import Prompt, generate
    from containers.tensorrt.model_directory import read_config
    from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession

    config = read_config(folder)
    session = OnnxRuntimeSession(folder, config, intra_op_threads=threads)
    texts = [Prompt(tuple(tokens), _NEW_TOKENS) for tokens in prompts]
    return lambda: [found for [found] in generate(session, texts, eos_token_ids=frozenset())]


def _ctranslate2(folder: Path, threads: int, prompts: list[list[int]]) -> Callable[[], Any]:
    import ctranslate2

    generator = ctranslate2.Generator(
        str(folder), device="cpu", compute_type="int8", inter_threads=1, intra_threads=threads
    )
    texts = [[str(token) for token in prompt] for prompt in prompts]

    def run() -> Any:
        found = generator.generate_batch(
            texts,
            min_length=_NEW_TOKENS,
            max_length=_NEW_TOKENS,
            sampling_topk=1,
            include_prompt_in_result=False,
        )
        return [each.sequences_ids[0] for each in found]

    return run


# Any: JSON.
def _measure(given: Mapping[str, Any]) -> Sequence[float]:
    opened = _ctranslate2 if given["system"] == "ctranslate2" else _container
    prompts = _prompts(given["vocabulary"])
    run = opened(Path(given["folder"], given["system"]), given["threads"], prompts)
    seconds = []
    for _ in range(given["runs"] + 1):
        began_at = time.perf_counter()
        lengths = {len(text) for text in run()}
        seconds.append(time.perf_counter() - began_at)
        if lengths != {_NEW_TOKENS}:
            raise ValueError(f"{given['system']} wrote texts of {lengths} tokens")
    # The first run also reserves memory.
    return seconds[1:]


if __name__ == "__main__":
    answer_call(_measure)
