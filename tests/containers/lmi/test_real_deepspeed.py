"""The DeepSpeed handler over DeepSpeed itself, on the CPU, where it has no kernels.

DJL Serving's classes are stand-ins here; those of `test_real_djl_python` are real, with a stand-in
for DeepSpeed.
"""

import json
from pathlib import Path

import pytest

from tests.containers.lmi import libraries
from tests.containers.lmi.server import STAND_IN_INPUTS, Server, StandInOutput
from tests.support.groups import load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
load("deepspeed", group="torch")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(120),
    # torch, transformers and DeepSpeed deprecate each other's and their own names.
    pytest.mark.filterwarnings("ignore"),
]

GPT2_SAMPLE = Path("samples/gpt2-autocomplete/model")
BERT_SAMPLE = Path("samples/bert-qa/model")
NEW_TOKENS = 6
PROMPTS = ["The maximum number of", "You can", "A list of the tags that are"]


@pytest.fixture
def server(load_script):
    script = load_script(libraries.module("djl_python", Output=StandInOutput))
    return Server(script.handle, STAND_IN_INPUTS["0.25"], "0.25")


def started(server, model, **options):
    options = {"dtype": "fp32", "tensor_parallel_degree": "1", "max_tokens": "128", **options}
    assert server.start(model_id=str(model), **options) is None
    return server


def request(*texts, **parameters):
    return {"inputs": list(texts), "parameters": {"max_new_tokens": NEW_TOKENS, **parameters}}


def greedy(model, text):
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    prompt = tokenizer(text, return_tensors="pt")
    tokens = network.generate(
        **prompt, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=tokenizer.eos_token_id
    )
    return tokenizer.decode(tokens[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)


def test_deepspeed_generates_what_transformers_does(server):
    started(server, GPT2_SAMPLE)
    expected = [[{"generated_text": greedy(GPT2_SAMPLE, prompt)}] for prompt in PROMPTS]
    assert len({str(answer) for answer in expected}) == len(PROMPTS)
    for prompt, answer in zip(PROMPTS, expected, strict=True):
        assert server.post(request(prompt)) == (200, answer)
    # Prompts of different lengths in one call of the engine, and a request that is refused.
    answers = server.post_together(*(request(prompt) for prompt in PROMPTS), {"inputs": []})
    assert answers[:-1] == [(200, answer) for answer in expected]
    assert answers[-1][1]["error"]["code"] == "invalid_request"


def test_deepspeed_draws_the_same_with_the_same_seed(server):
    started(server, GPT2_SAMPLE)
    drawn = request(PROMPTS[0], temperature=1.5, do_sample=True, seed=7)
    other = request(PROMPTS[0], temperature=1.5, do_sample=True, seed=8)
    first = server.post(drawn)
    assert first[0] == 200
    assert server.post(drawn) == first
    assert server.post(other) != first
    assert server.post_together(other, drawn)[1] == first


def test_a_prompt_that_is_too_long_is_refused(server):
    started(server, GPT2_SAMPLE, max_tokens="16")
    status, document = server.post(request(" ".join(PROMPTS)))
    assert (status, document["error"]["code"]) == (400, "invalid_request")
    assert server.post(request(PROMPTS[1]))[0] == 200


@pytest.fixture(params=["fill-mask", "text-classification", "token-classification"])
def bert(request, tmp_path):
    """A BERT with weights that mean nothing, and the sample's vocabulary."""
    task = str(request.param)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(BERT_SAMPLE / "tokenizer.json"),
        **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")},
    )
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    kind = {
        "fill-mask": transformers.BertForMaskedLM,
        "text-classification": transformers.BertForSequenceClassification,
        "token-classification": transformers.BertForTokenClassification,
    }[task]
    torch.manual_seed(0)
    network = kind(
        transformers.BertConfig(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2,
            num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
            initializer_range=0.5, num_labels=3,
        )
    )  # fmt: skip
    model = tmp_path / "bert"
    network.save_pretrained(model)
    tokenizer.save_pretrained(model)
    return task, model


def test_bert_behind_deepspeed_answers_as_transformers_pipeline(server, bert):
    task, model = bert
    started(server, model)
    text = "the [MASK] of a bucket" if task == "fill-mask" else "the name of a bucket"
    expected = transformers.pipeline(task, model=str(model), device="cpu")(text)
    status, answer = server.post({"inputs": text})
    assert status == 200
    (labels,) = answer
    assert len(labels) == len(expected) > 0
    for label, other in zip(labels, json.loads(json.dumps(expected, default=float)), strict=True):
        assert label.pop("score") == pytest.approx(other.pop("score"), rel=1e-4)
        assert label == other
