"""FasterTransformer behind DJL Serving: text generation with T5, GPT, BLOOM and OPT.

For djl-fastertransformer 0.21 to 0.24. The handler takes batches (`max_batch_size`) in every
version; AWS's own handler of 0.23 gives all requests of a batch the same answer. GPT-J and GPT-NeoX
need 0.23 or later and `engine: Python`, with which FasterTransformer runs inside Triton.

Options read from serving.properties (`option.`), with their defaults: model_id,
tensor_parallel_degree 1, pipeline_parallel_degree 1, dtype fp32, trust_remote_code false,
max_new_tokens 256, default_new_tokens 20, max_inputs 32.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastertransformer  # type: ignore[import-not-found]
import torch
import transformers
from djl_python import Output  # type: ignore[import-not-found]
from slipway_handler import Generation, GenerationLimits, Handler, Options, TextGeneration
from slipway_requests import MAX_SEED

_DTYPES: Final = ("fp32", "fp16", "bf16", "int8")
# FasterTransformer reduces larger values to this one.
_MAX_TOP_K: Final = 1024
_GREEDY: Final = {"top_k": 1, "top_p": 0.0, "temperature": 1.0}


class FasterTransformerModel:
    """A model of any kind in any version; the `TextModel` of this engine.

    `pipeline_generate` is the name of three different functions. T5's and GPT's run in processes of
    their own (MPI) and take one value of most settings for a whole batch. Triton's takes one value
    per prompt.
    """

    max_top_k = _MAX_TOP_K

    def __init__(self, model: Any, tokenizer: Any, config: Any, *, in_triton: bool) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._is_t5 = config.model_type == "t5"
        self._in_triton = in_triton
        # T5's positions are relative, and its prompt and answer are separate sequences.
        self.max_positions: int | None = (
            None if self._is_t5 else getattr(config, "max_position_embeddings", None)
        )

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer(text)["input_ids"])

    def generate(self, texts: Sequence[str], generation: Generation, seed: int) -> Sequence[str]:
        """Returns the new text of each prompt; each has the seed after the one before."""
        prompts = list(texts)
        seeds = [(seed + index) % (MAX_SEED + 1) for index in range(len(prompts))]
        if self._in_triton:
            return self._in_triton_generated(prompts, generation, seeds)
        if not self._is_t5:
            return self._gpt_generated(prompts, generation, seeds)
        if generation.sampling is None:
            return self._t5_generated(prompts, generation, seed)
        # T5's function takes one seed for all prompts, so equal prompts would get equal answers.
        return [
            self._t5_generated([prompt], generation, prompt_seed)[0]
            for prompt, prompt_seed in zip(prompts, seeds)  # noqa: B905 - Python 3.8 has no `strict`
        ]

    def _t5_generated(self, prompts: list[str], generation: Generation, seed: int) -> list[str]:
        generated: list[str] = self._model.pipeline_generate(
            prompts,
            max_seq_len=generation.max_new_tokens,
            repetition_penalty=generation.repetition_penalty,
            random_seed=seed,
            **_drawing(generation),
        )
        return generated

    def _gpt_generated(
        self, prompts: list[str], generation: Generation, seeds: Sequence[int]
    ) -> list[str]:
        generated: list[Any] = self._model.pipeline_generate(
            prompts,
            # Without it, the function computes the prompts one by one.
            batch_size=len(prompts),
            output_len=generation.max_new_tokens,
            beam_width=1,
            repetition_penalty=generation.repetition_penalty,
            random_seed=torch.tensor(seeds, dtype=torch.int64),
            **_drawing(generation),
        )
        # Up to 0.22 the answers are in one list per batch, and there is one batch.
        if len(generated) == 1 and isinstance(generated[0], list):
            generated = generated[0]
        return generated

    def _in_triton_generated(
        self, prompts: list[str], generation: Generation, seeds: Sequence[int]
    ) -> list[str]:
        count = len(prompts)
        drawing = _drawing(generation)
        generated: list[str] = self._model.pipeline_generate(
            prompts,
            [generation.max_new_tokens] * count,
            runtime_top_k=[drawing["top_k"]] * count,
            runtime_top_p=[drawing["top_p"]] * count,
            temperature=[drawing["temperature"]] * count,
            repetition_penalty=[generation.repetition_penalty] * count,
            random_seed=list(seeds),
        )
        if self._is_t5:
            return generated
        # Only Triton's answers start with the prompt.
        return [
            self._without_prompt(prompt, text)
            for prompt, text in zip(prompts, generated)  # noqa: B905 - Python 3.8 has no `strict`
        ]

    def _without_prompt(self, prompt: str, text: str) -> str:
        # The prompt as decoded from its tokens, which can differ from the text that was sent.
        # Decoding may also join the prompt's last characters with the answer's first; the texts
        # then differ from that character on.
        tokens = self._tokenizer(prompt)["input_ids"]
        decoded: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text[len(os.path.commonprefix([decoded, text])) :]  # noqa: RUF071 - characters


def _drawing(generation: Generation) -> dict[str, Any]:
    """Returns the sampling arguments; in FasterTransformer `top_k` 0 is off and 1 is greedy."""
    sampling = generation.sampling
    if sampling is None:
        return dict(_GREEDY)
    return {
        "top_k": sampling.top_k or 0,
        "top_p": sampling.top_p,
        "temperature": sampling.temperature,
    }


def load(properties: Mapping[str, Any]) -> TextGeneration:
    """Converts the checkpoint, or takes the converted one beside it, and loads it.

    `InvalidOptionsError` names every option that the handler does not support.
    """
    options = Options(properties)
    limits = GenerationLimits.read(options)
    model = options.model()
    tensor_parallel_degree = options.whole_number("tensor_parallel_degree", 1)
    pipeline_parallel_degree = options.whole_number("pipeline_parallel_degree", 1)
    dtype = options.choice("dtype", "fp32", _DTYPES)
    trust_remote_code = options.flag("trust_remote_code")
    options.finish()

    config = transformers.AutoConfig.from_pretrained(model, trust_remote_code=trust_remote_code)
    arguments: dict[str, Any] = {}
    # From 0.23 on, the engine Python runs Triton in the same process; before, there is no Triton.
    has_triton = "use_triton" in inspect.signature(fastertransformer.init_inference).parameters
    in_triton = has_triton and options.text("engine", "Python") == "Python"
    if has_triton:
        arguments["use_triton"] = in_triton
    if trust_remote_code:
        arguments["trust_remote_code"] = True
    loaded = fastertransformer.init_inference(
        model, tensor_parallel_degree, pipeline_parallel_degree, dtype, **arguments
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        model, trust_remote_code=trust_remote_code
    )
    return TextGeneration(
        FasterTransformerModel(loaded, tokenizer, config, in_triton=in_triton), limits
    )


handle = Handler(load, Output).handle
