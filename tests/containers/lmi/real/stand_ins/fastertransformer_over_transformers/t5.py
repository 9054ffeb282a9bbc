"""T5 of the images' Python package `fastertransformer`, over transformers on the CPU.

The arguments, their names, their types and the form of the answers are those of the package
(github.com/rohithkrn/FasterTransformer, python/fastertransformer): `T5Model` in processes of MPI,
and from 0.23 on `TritonModel`. What those refuse is refused here, and what they take and
transformers has nothing for is refused too, by name.
"""

import json

import numpy as np
import torch
import transformers

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
# What `T5Model` hands to FasterTransformer where the call says nothing.
_DEFAULTS = {
    "inputs_embeds": None,
    "beam_width": 1,
    "max_seq_len": 200,
    "top_k": 1,
    "top_p": 0.0,
    "beam_search_diversity_rate": 0.0,
    "temperature": 1.0,
    "len_penalty": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": None,
    "min_length": 0,
    "random_seed": 0,
    "is_return_output_log_probs": False,
    "is_return_cum_log_probs": False,
    "is_return_cross_attentions": False,
    "bad_words_list": None,
    "stop_words_list": None,
}
_WHOLE_NUMBERS = ("beam_width", "max_seq_len", "top_k", "min_length", "random_seed")
_NUMBERS = ("top_p", "temperature", "len_penalty", "repetition_penalty")
# Inputs of T5 in Triton, what each is converted to (triton/all_models/t5/config.pbtxt), and its
# name here.
_TRITON_INPUTS = {
    "runtime_top_k": (np.uint32, "top_k"),
    "runtime_top_p": (np.float32, "top_p"),
    "temperature": (np.float32, "temperature"),
    "len_penalty": (np.float32, "len_penalty"),
    "repetition_penalty": (np.float32, "repetition_penalty"),
    "random_seed": (np.uint64, "random_seed"),
}


class _Checkpoint:
    def __init__(self, path, dtype):
        print(f"stand-in: weights in {path}", flush=True)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self._network = transformers.T5ForConditionalGeneration.from_pretrained(path, dtype=dtype)

    def generate(
        self,
        prompts,
        *,
        beam_width,
        max_seq_len,
        top_k,
        top_p,
        temperature,
        len_penalty,
        repetition_penalty,
        min_length,
        random_seed,
    ):
        print(f"stand-in: generates for {json.dumps(prompts)}", flush=True)
        arguments = {"do_sample": False}
        # Both at nothing, or the likeliest token alone, is greedy in FasterTransformer.
        if beam_width == 1 and top_k != 1 and (top_k, top_p) != (0, 0.0):
            torch.manual_seed(random_seed)
            arguments = {
                "do_sample": True,
                "temperature": temperature,
                "top_k": top_k,
                "top_p": top_p or 1.0,
            }
        if beam_width > 1:
            arguments["length_penalty"] = len_penalty
        tokens = self.tokenizer(prompts, padding=True, return_tensors="pt")
        with torch.no_grad():
            answers = self._network.generate(
                **tokens,
                num_beams=beam_width,
                max_new_tokens=max_seq_len,
                min_new_tokens=min_length,
                repetition_penalty=repetition_penalty,
                **arguments,
            )
        return self.tokenizer.batch_decode(answers, skip_special_tokens=True)


class T5Model:
    """T5 in processes of MPI, of which there is one here: the same values for every prompt."""

    def __init__(self, checkpoint):
        self._checkpoint = checkpoint

    def pipeline_generate(self, inputs, **kwargs):
        unknown = kwargs.keys() - _DEFAULTS.keys()
        if unknown:
            # From `FTT5.forward`, which gets them all.
            raise TypeError(f"forward() got an unexpected keyword argument '{min(unknown)}'")
        arguments = {**_DEFAULTS, **kwargs}
        for name in (*_WHOLE_NUMBERS, *_NUMBERS):
            kinds = int if name in _WHOLE_NUMBERS else (int, float)
            value = arguments[name]
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise RuntimeError(f"forward() cannot take {value!r} as {name}")
        used = {name: arguments.pop(name) for name in (*_WHOLE_NUMBERS, *_NUMBERS)}
        for name, value in arguments.items():
            if value != _DEFAULTS[name]:
                raise NotImplementedError(f"the stand-in has no {name}")
        return self._checkpoint.generate(inputs, **used)


class TritonModel:
    """T5 in a Triton inside the worker: values of their own for each prompt."""

    def __init__(self, checkpoint):
        self._checkpoint = checkpoint

    def pipeline_generate(self, inputs, output_length, padding_side="right", **kwargs):
        if padding_side != "right":
            raise NotImplementedError("the stand-in pads on the right")
        columns = {"max_seq_len": _column(output_length, np.uint32, len(inputs))}
        for name, values in kwargs.items():
            kind, own_name = _TRITON_INPUTS[name]
            columns[own_name] = _column(values, kind, len(inputs))
        defaults = {name: _DEFAULTS[name] for name in (*_WHOLE_NUMBERS, *_NUMBERS)}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return [
            self._checkpoint.generate([prompt], **{**defaults, **row})[0]
            for prompt, row in zip(inputs, rows, strict=True)
        ]


def _column(values, kind, count):
    """Converts an input's values as the package does; Triton wants one for each prompt."""
    return np.array(values, dtype=kind).reshape(count).tolist()


def loaded(path, tensor_parallel_degree, pipeline_parallel_degree, dtype):
    """Checks what every release of `init_inference` checks, and loads the checkpoint."""
    kind = transformers.AutoConfig.from_pretrained(path).model_type
    if kind != "t5":
        raise ValueError(f"{kind} type not supported for model {path}")
    if dtype not in _DTYPES:
        raise NotImplementedError(f"Not implemented for {dtype}!")
    assert tensor_parallel_degree == 1, "[FATAL] MPI is required for tensor_para_size > 1."
    assert pipeline_parallel_degree == 1, "[FATAL] MPI is required for pipeline_para_size > 1."
    return _Checkpoint(path, _DTYPES[dtype])
