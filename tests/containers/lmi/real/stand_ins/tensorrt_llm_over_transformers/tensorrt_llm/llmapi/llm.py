"""What `LLM` is told, how it chooses tokens, the engine, and the results under way."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
import torch
import transformers
from pydantic import BaseModel, ConfigDict


class KvCacheConfig(BaseModel):
    """The cache of keys and values; the handler always makes one, and the package says nothing."""

    model_config = ConfigDict(extra="forbid")


class TrtLlmArgs(BaseModel):
    """The fields that the handler fills.

    0.21.0rc1 keeps a field that it does not know and does nothing with it (`extra='allow'` in the
    reference of that day). Of those the handler sends one, `pytorch_config`; any other is refused
    here. 0.21.0 refuses that one, too: "LLM got invalid argument: pytorch_config".
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    model: str
    tokenizer: str | None = None
    tokenizer_mode: Literal["auto", "slow"] = "auto"
    skip_tokenizer_init: bool = False
    trust_remote_code: bool = False
    tensor_parallel_size: int = 1
    dtype: str = "auto"
    revision: str | None = None
    tokenizer_revision: str | None = None
    pipeline_parallel_size: int = 1
    context_parallel_size: int = 1
    moe_tensor_parallel_size: int | None = None
    moe_expert_parallel_size: int | None = None
    enable_attention_dp: bool = False
    load_format: Literal["auto", "dummy"] = "auto"
    kv_cache_config: KvCacheConfig | None = None
    enable_chunked_prefill: bool = False
    guided_decoding_backend: str | None = None
    iter_stats_max_iterations: int | None = None
    request_stats_max_iterations: int | None = None
    batching_type: str | None = None
    normalize_log_probs: bool = False
    max_batch_size: int | None = None
    max_input_len: int = 1024
    max_seq_len: int | None = None
    max_beam_width: int = 1
    max_num_tokens: int | None = None
    backend: str | None = None
    gather_generation_logits: bool = False
    num_postprocess_workers: int = 0
    auto_parallel: bool = False
    auto_parallel_world_size: int | None = None
    enable_build_cache: bool = False
    embedding_parallel_mode: str = "SHARDING_ALONG_VOCAB"
    pytorch_config: Any = None

    def refuse_what_is_not_here(self):
        """Says which setting asks for what the stand-in lacks; other defaults are its own."""
        same = type(self)(model=self.model).model_dump()
        taken = {
            # They have no effect on an engine that is there already.
            *("model", "dtype", "trust_remote_code", "max_input_len", "max_seq_len"),
            *("max_num_tokens", "enable_build_cache", "embedding_parallel_mode"),
            # There is one GPU's worth of one process, which takes what comes.
            *("max_batch_size", "kv_cache_config"),
        }
        for name, value in self.model_dump().items():
            if name not in taken and value != same[name]:
                raise NotImplementedError(f"the stand-in has no {name}={value!r}")


@dataclass(kw_only=True)
class SamplingParams:
    """The fields that the protocol fills.

    TensorRT-LLM refuses with a ValueError, and the stand-in what it has not, by another error.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None
    seed: int | None = None
    n: int = 1
    best_of: int | None = None
    min_tokens: int = 0
    min_p: float = 0.0
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    use_beam_search: bool = False
    return_context_logits: bool = False

    def __post_init__(self):
        if self.truncate_prompt_tokens is not None and self.truncate_prompt_tokens < 1:
            raise ValueError(
                f"truncate_prompt_tokens must be >= 1, got {self.truncate_prompt_tokens}"
            )
        used = {
            *("max_tokens", "temperature", "top_k", "top_p", "ignore_eos", "skip_special_tokens"),
            *("truncate_prompt_tokens", "seed"),
        }
        if not self.is_greedy and ((self.top_k or 0) != 0 or self.top_p not in (None, 1.0)):
            raise NotImplementedError(
                f"the stand-in has no top_k={self.top_k!r} with top_p={self.top_p!r}"
            )
        for item in fields(self):
            value = getattr(self, item.name)
            default = [] if item.name.startswith("stop") else item.default
            if item.name not in used and value != default:
                raise NotImplementedError(f"the stand-in has no {item.name}={value!r}")
        if self.max_tokens is None or self.max_tokens < 1:
            raise NotImplementedError(f"the stand-in has no max_tokens={self.max_tokens!r}")

    @property
    def is_greedy(self):
        """Whether the likeliest token is taken: with a temperature of 0 whatever else is said."""
        return self.temperature == 0 or self.top_k == 1 or self.top_p == 0


@dataclass
class CompletionOutput:
    """One answer so far; it grows while a stream goes on.

    `finish_reason` is `stop` or `length`. `stop_reason` is None where the model ended the text.
    """

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    disaggregated_params: None = None
    _last_text_length: int = 0

    @property
    def length(self):
        return len(self.token_ids)

    @property
    def text_diff(self):
        return self.text[self._last_text_length :]


class Engine:
    """A GPT-2 that computes one token of one request at a time, in a thread of its own."""

    def __init__(self, directory):
        settings = json.loads((directory / "config.json").read_text("utf-8"))
        if "build_config" not in settings:
            raise NotImplementedError(f"the stand-in builds no engine: {directory} has none")
        self.max_seq_len = settings["build_config"]["max_seq_len"]
        shape = settings["pretrained_config"]
        assert shape["architecture"] == "GPTForCausalLM", shape
        network = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=shape["vocab_size"],
                n_positions=shape["max_position_embeddings"],
                n_embd=shape["hidden_size"],
                n_layer=shape["num_hidden_layers"],
                n_head=shape["num_attention_heads"],
                bos_token_id=None,
                eos_token_id=None,
            )
        )
        missing, unexpected = network.load_state_dict(
            safetensors.torch.load_file(directory / "rank0.engine"), strict=False
        )
        # It is the embedding itself.
        assert (missing, unexpected) == (["lm_head.weight"], []), (missing, unexpected)
        network.tie_weights()
        self._network = network.eval()
        self._pool = ThreadPoolExecutor(1)

    async def logits(self, token_ids):
        """Returns those of the token after these; other requests get theirs meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._logits, token_ids)

    def _logits(self, token_ids):
        with torch.no_grad():
            return self._network(torch.tensor([token_ids])).logits[0, -1]


class RequestOutput:
    """The result of a request: to await as a whole, or to iterate over where it is streamed.

    Every step of the iteration yields this same object, grown, as TensorRT-LLM's does.
    """

    def __init__(self, engine, tokenizer, prompt_token_ids, sampling_params, streaming):
        self.prompt_token_ids = prompt_token_ids
        self.outputs = [CompletionOutput(0)]
        self.context_logits = None
        self._done = False
        self._engine = engine
        self._tokenizer = tokenizer
        self._sampling_params = sampling_params
        self._streaming = streaming
        self._chance = torch.Generator().manual_seed(sampling_params.seed or 0)

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self._done:
            raise StopAsyncIteration
        await self._step()
        while not (self._done or self._streaming):
            await self._step()
        return self

    async def _step(self):
        (output,) = self.outputs
        params = self._sampling_params
        logits = await self._engine.logits(self.prompt_token_ids + output.token_ids)
        if params.is_greedy:
            token = int(logits.argmax())
        else:
            chances = (logits / (params.temperature or 1.0)).softmax(0)
            token = int(torch.multinomial(chances, 1, generator=self._chance))
        output._last_text_length = len(output.text)
        if token == self._tokenizer.eos_token_id and not params.ignore_eos:
            output.finish_reason = "stop"
        else:
            output.token_ids.append(token)
            output.text = self._tokenizer.decode(
                output.token_ids, skip_special_tokens=params.skip_special_tokens
            )
            if output.length == params.max_tokens:
                output.finish_reason = "length"
        self._done = output.finish_reason is not None


class LLM:
    """An engine with its tokenizer; refuses arguments that are not `TrtLlmArgs`', or not here."""

    def __init__(self, model, **kwargs):
        self.args = TrtLlmArgs(model=model, **kwargs)
        said = self.args.model_dump(exclude={"model"})
        print(f"stand-in: engine {model} with {json.dumps(said)}", flush=True)
        self.args.refuse_what_is_not_here()
        self._engine = Engine(Path(model))
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(
            model, trust_remote_code=self.args.trust_remote_code
        )

    def generate_async(
        self,
        inputs,
        sampling_params,
        *,
        streaming=False,
        disaggregated_params=None,
        _postproc_params=None,
    ):
        """Begins a request; `ValueError` where the engine has not that many positions."""
        tokens = self.tokenizer.encode(inputs) if isinstance(inputs, str) else inputs
        if sampling_params.truncate_prompt_tokens is not None:
            tokens = tokens[-sampling_params.truncate_prompt_tokens :]
        if not tokens:
            raise NotImplementedError("the stand-in has no empty prompt")
        if len(tokens) + sampling_params.max_tokens > self._engine.max_seq_len:
            raise ValueError(
                f"The sum of prompt length ({len(tokens) / 1}) and query length (0) max_tokens "
                f"({sampling_params.max_tokens}) should not exceed max_seq_len "
                f"({self._engine.max_seq_len})"
            )
        return RequestOutput(self._engine, self.tokenizer, tokens, sampling_params, streaming)
