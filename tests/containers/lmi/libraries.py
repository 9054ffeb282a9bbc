"""Stand-ins for the libraries in the images: their interfaces over an engine that one can follow.

Text is a token a character. The engine goes on with the alphabet: after "abc" comes "def"; what it
draws with a seed is upper case, so that one sees which path was taken. The interfaces are those of
the images' `fastertransformer`, `deepspeed`, `transformers` and `torch`, as far as handlers use
them; an argument that the real one does not know is an error here too.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

# Checkpoints, by their config.json.
GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "max_position_embeddings": 64,
}
T5 = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
PAD = 0
# A prompt with it makes the engine fail, as when memory runs out.
POISON = "!"


@dataclass
class Journal:
    loaded: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def called(self, prompts, top_k, top_p, temperature, repetition_penalty, **more):
        sampling = {"top_k": top_k, "top_p": top_p, "temperature": temperature}
        self.calls.append(
            {"prompts": prompts, "repetition_penalty": repetition_penalty, **sampling, **more}
        )


def module(name, **members):
    result = ModuleType(name)
    # By which `importlib.util.find_spec` finds it.
    result.__spec__ = ModuleSpec(name, None)
    vars(result).update(members)
    return result


def continued(prompt, count):
    """What the engine generates greedily."""
    if POISON in prompt:
        raise RuntimeError("CUDA out of memory at /opt/engine/secret.cu:17")
    return "".join(chr((ord(prompt[-1]) - 97 + step) % 26 + 97) for step in range(1, count + 1))


def drawn(prompt, count, seed):
    """What the engine draws for one prompt with a seed of its own."""
    numbers = random.Random(f"{prompt}/{seed}")  # noqa: S311 - a stand-in's draws, no secret
    return "".join(numbers.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(count))


class Encoding(dict[str, Any]):
    def to(self, device):
        assert device == "cuda:0"
        return self


class Tokenizer:
    """A token a character; tabs are what this tokenizer does not know."""

    padding_side = "right"
    mask_token = "[MASK]"  # noqa: S105 - not a password
    eos_token = "\x03"  # noqa: S105 - not a password

    def __init__(self):
        self.pad_token = None

    @property
    def pad_token_id(self):
        return None if self.pad_token is None else PAD

    def __call__(self, text, *, padding=False, return_tensors=None):
        if isinstance(text, str):
            return Encoding(input_ids=[ord(character) for character in text if character != "\t"])
        assert padding
        assert return_tensors == "pt"
        assert self.pad_token is not None, "Asking to pad without a padding token"
        longest = max(map(len, text))
        ids, mask = np.full((2, len(text), longest), PAD)
        for row, line in enumerate(text):
            where = slice(longest - len(line), None)
            if self.padding_side == "right":
                where = slice(len(line))
            ids[row, where], mask[row, where] = [ord(character) for character in line], 1
        return Encoding(input_ids=ids, attention_mask=mask)

    def decode(self, tokens, *, skip_special_tokens):
        assert skip_special_tokens
        return "".join(chr(token) for token in tokens if token != PAD).replace(" ,", ",")

    def batch_decode(self, rows, *, skip_special_tokens):
        return [self.decode(list(row), skip_special_tokens=skip_special_tokens) for row in rows]


def transformers(journal, config):
    class FromPretrained:
        def __init__(self, make):
            self._make = make

        def from_pretrained(self, path, **arguments):
            return self._make(path=path, **arguments)

        def from_config(self, config, **arguments):
            return self._make(config=config, **arguments)

    def network(**arguments):
        journal.loaded.append(arguments)
        return SimpleNamespace(kind="network")

    names = ("CausalLM", "MaskedLM", "SequenceClassification", "TokenClassification")
    return module(
        "transformers",
        AutoConfig=FromPretrained(lambda **_: SimpleNamespace(**config)),
        AutoTokenizer=FromPretrained(lambda **_: Tokenizer()),
        pipeline=lambda task, **_: Pipeline(task),
        **{f"AutoModelFor{name}": FromPretrained(network) for name in names},
    )


class Pipeline:
    def __init__(self, task):
        self._task = task

    def __call__(self, text, **arguments):
        if POISON in text:
            raise RuntimeError("CUDA out of memory at /opt/engine/secret.cu:17")
        if self._task == "token-classification":
            assert not arguments
            return [{"entity": "B-PER", "score": np.float32(0.5), "index": 1, "word": text[:3]}]
        assert set(arguments) <= {"top_k"}
        count = arguments.get("top_k", 1 if self._task == "text-classification" else 5)
        return [{"label": f"{text}-{index}", "score": 1 / 2**index} for index in range(count)]


class Engine:
    """Stands in for `deepspeed.InferenceEngine` over a causal language model."""

    def __init__(self, journal, torch, network):
        self._journal, self._torch = journal, torch
        self.module = network

    def generate(
        self,
        *,
        input_ids,
        attention_mask,
        max_new_tokens,
        num_beams,
        repetition_penalty,
        pad_token_id,
        do_sample,
        **sampling,
    ):
        assert self._torch.gradients_are_off, "the engine keeps gradients"
        assert num_beams == 1
        assert pad_token_id == PAD
        assert (attention_mask == (input_ids != PAD)).all()
        assert (input_ids[:, -1] != PAD).all(), "padding after the prompt"
        assert set(sampling) == ({"temperature", "top_k", "top_p"} if do_sample else set())
        prompts = ["".join(chr(token) for token in row if token != PAD) for row in input_ids]
        self._journal.calls.append(
            {"prompts": prompts, "repetition_penalty": repetition_penalty, **sampling}
        )
        texts = [continued(prompt, max_new_tokens) for prompt in prompts]
        if do_sample:
            # As in PyTorch: one stream of numbers, which the rows take from in turn. What a row
            # gets depends on how many there are.
            seed = self._journal.seeds[-1] + 1000 * (len(prompts) - 1)
            texts = [
                drawn(prompt, max_new_tokens, seed + 1_000_000 * row)
                for row, prompt in enumerate(prompts)
            ]
        return np.hstack([input_ids, [[ord(character) for character in text] for text in texts]])


def torch(journal):
    result = module(
        "torch",
        gradients_are_off=False,
        manual_seed=journal.seeds.append,
        tensor=lambda values, dtype: np.array(values, dtype=dtype),
        int64=np.int64,
        **{name: f"torch.{name}" for name in ("float32", "float16", "bfloat16", "int8")},
    )

    @contextlib.contextmanager
    def no_grad():
        vars(result)["gradients_are_off"] = True
        yield
        vars(result)["gradients_are_off"] = False

    vars(result)["no_grad"] = no_grad
    return result


def deepspeed(journal, torch):
    """Stands in for DeepSpeed 0.8.3 to 0.12.6, on a GPU."""

    @contextlib.contextmanager
    def on_device(dtype, device):
        journal.loaded.append({"on_device": device, "dtype": dtype})
        yield

    def init_inference(network, config):
        journal.loaded.append(config)
        return Engine(journal, torch, network)

    def device_name(index=None):
        return "cuda" if index is None else f"cuda:{index}"

    accelerator = SimpleNamespace(device_name=device_name)
    return module(
        "deepspeed",
        init_inference=init_inference,
        OnDevice=on_device,
        accelerator=SimpleNamespace(get_accelerator=lambda: accelerator),
    )


def t5_of_fastertransformer(journal):
    """Stands in for T5 in processes of its own: one value of everything for the whole call."""

    def pipeline_generate(
        inputs,
        *,
        max_seq_len=200,
        top_k=1,
        top_p=0.0,
        temperature=1.0,
        repetition_penalty=1.0,
        random_seed=0,
    ):
        journal.called(inputs, top_k, top_p, temperature, repetition_penalty, seed=random_seed)
        return [generated(each, max_seq_len, top_k, top_p, random_seed) for each in inputs]

    return pipeline_generate


def gpt_of_fastertransformer(journal, *, nested):
    """Stands in for GPT in processes of its own: one list of answers a batch, to 0.22."""

    def pipeline_generate(
        inputs,
        batch_size=1,
        output_len=32,
        beam_width=1,
        *,
        random_seed,
        top_k=1,
        top_p=0.0,
        temperature=1.0,
        repetition_penalty=1.0,
    ):
        assert beam_width == 1
        assert random_seed.shape == (batch_size,)
        journal.called(inputs, top_k, top_p, temperature, repetition_penalty)
        texts = [
            generated(prompt, output_len, top_k, top_p, int(seed))
            for prompt, seed in zip(inputs, random_seed, strict=True)
        ]
        if not nested:
            return texts
        return [texts[i : i + batch_size] for i in range(0, len(texts), batch_size)]

    return pipeline_generate


def triton_of_fastertransformer(journal, *, is_t5):
    """Stands in for any model inside Triton: one value a prompt, the prompt before the answer."""

    def pipeline_generate(
        inputs,
        output_length,
        *,
        runtime_top_k,
        runtime_top_p,
        temperature,
        repetition_penalty,
        random_seed,
    ):
        journal.called(inputs, runtime_top_k, runtime_top_p, temperature, repetition_penalty)
        assert len(temperature) == len(repetition_penalty) == len(inputs)
        columns = (inputs, output_length, runtime_top_k, runtime_top_p, random_seed)
        texts = [generated(*row) for row in zip(*columns, strict=True)]
        if is_t5:
            return texts
        both = [prompt + text for prompt, text in zip(inputs, texts, strict=True)]
        return Tokenizer().batch_decode(
            [[ord(character) for character in line] for line in both], skip_special_tokens=True
        )

    return pipeline_generate


def generated(prompt, count, top_k, top_p, seed):
    """What FasterTransformer generates, which is greedy with these values."""
    is_greedy = (top_k, top_p) == (1, 0.0)
    return continued(prompt, count) if is_greedy else drawn(prompt, count, seed)


def fastertransformer(journal, version, model_type):
    """Stands in for the package that the images of 0.21 to 0.24 have."""
    is_t5 = model_type == "t5"

    def init_inference(model, tensor_parallel_degree, pipeline_parallel_degree, dtype):
        journal.loaded.append(
            {"model": model, "degrees": (tensor_parallel_degree, pipeline_parallel_degree)}
        )
        assert dtype in ("fp32", "fp16", "bf16")
        if is_t5:
            generate = t5_of_fastertransformer(journal)
        else:
            generate = gpt_of_fastertransformer(journal, nested=version in ("0.21", "0.22"))
        return SimpleNamespace(pipeline_generate=generate)

    def init_inference_with_triton(
        model, tensor_parallel_degree, pipeline_parallel_degree, dtype, use_triton=None, **further
    ):
        assert set(further) <= {"trust_remote_code"}
        loaded = init_inference(model, tensor_parallel_degree, pipeline_parallel_degree, dtype)
        journal.loaded[-1].update(further)
        if use_triton:
            loaded.pipeline_generate = triton_of_fastertransformer(journal, is_t5=is_t5)
        return loaded

    has_triton = version in ("0.23", "0.24")
    return module(
        "fastertransformer",
        init_inference=init_inference_with_triton if has_triton else init_inference,
    )
