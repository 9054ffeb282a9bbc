"""DeepSpeed's kernels behind DJL Serving: text generation, and BERT's tasks on single texts.

For djl-deepspeed 0.21 to 0.27, and without the kernels on a CPU. Version 0.27 turns a rolling batch
on by itself, which only AWS's own handlers serve. For a script, Slipway therefore writes
`option.rolling_batch=disable`.

Options read from serving.properties (`option.`), with their defaults. For loading: model_id,
tensor_parallel_degree 1, dtype fp16, task (by the checkpoint's architecture), max_tokens 1024,
checkpoint, enable_cuda_graph false, trust_remote_code false. For requests: max_new_tokens 256,
default_new_tokens 20, max_inputs 32.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import deepspeed
import torch
import transformers
from djl_python import Output  # type: ignore[import-not-found]
from slipway_handler import (
    Generation,
    GenerationLimits,
    Handler,
    Options,
    Predictor,
    TextGeneration,
)
from slipway_requests import InvalidRequestError, parse_body, whole_number

TEXT_GENERATION: Final = "text-generation"
# The end of an architecture's name, with its task and the class that loads it.
_TASKS: Final = {
    TEXT_GENERATION: (("ForCausalLM", "LMHeadModel", "BloomModel"), "AutoModelForCausalLM"),
    "fill-mask": (("ForMaskedLM",), "AutoModelForMaskedLM"),
    "text-classification": (("ForSequenceClassification",), "AutoModelForSequenceClassification"),
    "token-classification": (("ForTokenClassification",), "AutoModelForTokenClassification"),
}
# Model types whose layers DeepSpeed 0.8.3, the oldest image's version, replaces by its kernels.
_WITH_KERNELS: Final = ("bert", "bloom", "gpt2", "gpt_neo", "gpt_neox", "gptj", "opt")
_DTYPES: Final = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8"}
_MAX_TOP_K: Final = 1_000_000


@dataclass(frozen=True)
class _Loaded:
    """An engine with its tokenizer; positions are in tokens, and None stands for no limit."""

    engine: Any
    tokenizer: Any
    device: str
    max_positions: int | None


class DeepSpeedModel:
    """A causal language model; the `TextModel` of this engine."""

    max_top_k = _MAX_TOP_K

    def __init__(self, loaded: _Loaded, max_tokens: int) -> None:
        self._engine, self._tokenizer = loaded.engine, loaded.tokenizer
        self._device = loaded.device
        # The kernels' key/value cache has room for so many tokens, whatever the model could handle.
        self.max_positions: int | None = min(max_tokens, loaded.max_positions or max_tokens)
        # New tokens follow the prompt, so a shorter prompt must be padded on the left.
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer(text)["input_ids"])

    def generate(self, texts: Sequence[str], generation: Generation, seed: int) -> Sequence[str]:
        arguments: dict[str, Any] = {"do_sample": False}
        sampling = generation.sampling
        if sampling:
            arguments = {
                "do_sample": True,
                "temperature": sampling.temperature,
                # 0 turns the filter off; without it, transformers would keep only the 50 likeliest
                # tokens.
                "top_k": sampling.top_k or 0,
                "top_p": sampling.top_p,
            }
            torch.manual_seed(seed)
        prompts = self._tokenizer(list(texts), padding=True, return_tensors="pt").to(self._device)
        with torch.no_grad():
            token_ids = self._engine.generate(
                input_ids=prompts["input_ids"],
                attention_mask=prompts["attention_mask"],
                max_new_tokens=generation.max_new_tokens,
                num_beams=1,
                repetition_penalty=generation.repetition_penalty,
                pad_token_id=self._tokenizer.pad_token_id,
                **arguments,
            )
        new_token_ids = token_ids[:, prompts["input_ids"].shape[1] :]
        generated: list[str] = self._tokenizer.batch_decode(new_token_ids, skip_special_tokens=True)
        return generated


@dataclass(frozen=True)
class LabelRequest:
    """Texts for one of BERT's tasks; without `top_k`, each gets the task's number of labels."""

    texts: tuple[str, ...]
    top_k: int | None


class Labels:
    """The predictor of BERT's tasks: lists the output of the task's pipeline for each text."""

    def __init__(self, task: str, loaded: _Loaded, max_inputs: int) -> None:
        self._task, self._tokenizer = task, loaded.tokenizer
        self._max_positions, self._max_inputs = loaded.max_positions, max_inputs
        self._parameters = () if task == "token-classification" else ("top_k",)
        self._pipeline = transformers.pipeline(
            task, model=loaded.engine.module, tokenizer=loaded.tokenizer, device=loaded.device
        )

    def parse(self, body: bytes) -> LabelRequest:
        texts, parameters = parse_body(body, self._parameters, max_inputs=self._max_inputs)
        for index, text in enumerate(texts):
            count = len(self._tokenizer(text)["input_ids"])
            if self._max_positions is not None and count > self._max_positions:
                raise InvalidRequestError(
                    f"Input {index} has {count} tokens; the limit is {self._max_positions}."
                )
            masks = text.count(self._tokenizer.mask_token) if self._task == "fill-mask" else 1
            if masks != 1:
                raise InvalidRequestError(
                    f"Input {index} has {masks} {self._tokenizer.mask_token}; it must have one."
                )
        return LabelRequest(texts, whole_number(parameters, "top_k", 1, 1000))

    def group(self, request: LabelRequest) -> Hashable:
        """Returns None, because a pipeline takes its texts one by one anyway."""

    def predict(self, requests: Sequence[LabelRequest]) -> Sequence[object]:
        return [
            [self._labels(text, request.top_k) for text in request.texts] for request in requests
        ]

    def _labels(self, text: str, top_k: int | None) -> list[dict[str, Any]]:
        labels: list[dict[str, Any]] = self._pipeline(text, **({"top_k": top_k} if top_k else {}))
        return [{name: _plain(value) for name, value in label.items()} for label in labels]


def _plain(value: Any) -> Any:
    """Converts numpy's numbers, which some scores are, to Python's, since JSON knows no others."""
    return value.item() if hasattr(value, "item") else value


def load(properties: Mapping[str, Any]) -> Predictor[Any]:
    """Loads the checkpoint into DeepSpeed; `InvalidOptionsError` names every unsupported option."""
    options = Options(properties)
    limits = GenerationLimits.read(options)
    model = options.model()
    trust_remote_code = options.flag("trust_remote_code")
    config = transformers.AutoConfig.from_pretrained(model, trust_remote_code=trust_remote_code)
    if config.model_type not in _WITH_KERNELS:
        options.problem(
            f"DeepSpeed has no kernels for models of type {config.model_type}, only for "
            f"{', '.join(_WITH_KERNELS)}: take the image's own handler, without a script"
        )
    task = options.choice("task", _task_of(config), tuple(_TASKS))
    dtype = options.choice("dtype", "fp16", tuple(_DTYPES))
    max_tokens = options.whole_number("max_tokens", 1024)
    accelerator = deepspeed.accelerator.get_accelerator()
    settings: dict[str, Any] = {
        # DeepSpeed has its kernels only for CUDA; on a CPU the layers stay transformers' own.
        "replace_with_kernel_inject": accelerator.device_name() == "cuda",
        "tensor_parallel": {"tp_size": options.whole_number("tensor_parallel_degree", 1)},
        "max_tokens": max_tokens,
        "enable_cuda_graph": options.flag("enable_cuda_graph"),
        "dtype": getattr(torch, _DTYPES.get(dtype, "float16")),
    }
    checkpoint = options.text("checkpoint")
    if checkpoint:
        settings.update(checkpoint=str(Path(model, checkpoint)), base_dir=model)
    options.finish()

    # DeepSpeed quantizes the weights itself, from fp16.
    weights_dtype = torch.float16 if dtype == "int8" else settings["dtype"]
    automatic = getattr(transformers, _TASKS[task][1])
    if checkpoint:
        with deepspeed.OnDevice(dtype=weights_dtype, device="meta"):
            network = automatic.from_config(config, torch_dtype=weights_dtype)
    else:
        network = automatic.from_pretrained(
            model,
            torch_dtype=weights_dtype,
            low_cpu_mem_usage=True,
            trust_remote_code=trust_remote_code,
        )
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        model, trust_remote_code=trust_remote_code
    )
    loaded = _Loaded(
        engine=deepspeed.init_inference(network, config=settings),
        tokenizer=tokenizer,
        device=accelerator.device_name(int(os.environ.get("LOCAL_RANK", "0"))),
        max_positions=getattr(config, "max_position_embeddings", None),
    )
    if task == TEXT_GENERATION:
        return TextGeneration(DeepSpeedModel(loaded, max_tokens), limits)
    return Labels(task, loaded, limits.max_inputs)


def _task_of(config: Any) -> str:
    """Returns the task that a checkpoint was made for; the first task if the config has none."""
    architecture = (config.architectures or [""])[0]
    for task, (endings, _) in _TASKS.items():
        if architecture.endswith(endings):
            return task
    return TEXT_GENERATION


handle = Handler(load, Output).handle
