"""The engine, and the results under way."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
import torch
import transformers

from tensorrt_llm.llmapi.llm_args import TrtLlmArgs


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

    async def aresult(self):
        while not self._done:
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
