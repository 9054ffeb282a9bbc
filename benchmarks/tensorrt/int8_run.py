"""Makes and times the systems of `int8`, in processes of their own.

    python -m benchmarks.tensorrt.int8_run '{"name": ...}' FOLDER SEED
    python -m benchmarks.tensorrt.int8_run < {"system": ..., ...}

The first makes a GPT-2 with random weights for all systems, and the second times one of them.
"""

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.execution import answer_call
from benchmarks.models import Model

SYSTEMS = ("fp32", "int8", "ctranslate2")
_TEXTS, _PROMPT_TOKENS, _NEW_TOKENS = 10, 12, 30
_SEED = 1


def make(model: Model, folder: Path, seed: int) -> None:
    from ctranslate2.converters.transformers import GPT2Loader
    from transformers import GPT2LMHeadModel

    from benchmarks.tensorrt.models import make_random_model
    from containers.tensorrt.export.gpt2 import export_gpt2_step
    from containers.tensorrt.export.int8 import quantize_graph

    fp32, int8, other = (folder / name for name in SYSTEMS)
    for each in (fp32, int8, other):
        each.mkdir()
    make_random_model(model, fp32, seed)
    for name in ("config.json", "generation_config.json"):
        shutil.copyfile(fp32 / name, int8 / name)
    made = GPT2LMHeadModel.from_pretrained(fp32).eval()
    # As a compile job exports for int8.
    made.set_attn_implementation("eager")
    export_gpt2_step(made, int8 / "model.onnx")
    quantize_graph(int8 / "model.onnx")
    specification = GPT2Loader().get_model_spec(made)
    specification.register_vocabulary([str(token) for token in range(model.vocabulary)])
    for name in ("bos_token", "eos_token", "unk_token"):
        setattr(specification.config, name, "0")
    specification.validate()
    specification.optimize(quantization="int8")
    specification.save(str(other))


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
    if len(sys.argv) > 1:
        make(Model(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
    else:
        answer_call(_measure)
