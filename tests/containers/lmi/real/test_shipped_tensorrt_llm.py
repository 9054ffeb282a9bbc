"""The shipped package for TensorRT-LLM on the real DJL Serving 0.33.0, over a stand-in for it.

The server, its worker and its handler, `djl_python.lmi_trtllm.trtllm_async_service`, are real, and
the package is the shipped one, unchanged. TensorRT-LLM is a stand-in over transformers
(`stand_ins/tensorrt_llm_over_transformers` says of which release), on the CPU.

Before the handler, the server builds an engine of the weights, on a GPU and with a script of its
image, unless their config.json has `build_config`: then they are an engine, as `artifacts.compile`
publishes one. Here they are one of the sample model, but for the engine itself, which the stand-in
reads in another form. TensorRT-LLM, its numbers and the building of an engine are not shown.
"""

import json
import os
import re

import pytest

from slipway.embedded_aws.hosting.families.lmi.djl_serving import tag_environment
from slipway.project import Project
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.sample import BUCKET, COMPLETIONS, greedy
from tests.containers.lmi.real.servers import SAMPLE
from tests.containers.lmi.real.shipped import DIGEST, Served, answering
from tests.support.waiting import eventually

pytestmark = [pytest.mark.djl_serving, pytest.mark.torch, pytest.mark.timeout(300)]

NAME = "qwen2-7b-trtllm"
STAND_IN = servers.STAND_INS / "tensorrt_llm_over_transformers"
POSITIONS = 128
START_SECONDS = 120.0

# What the handler makes of every answer of TensorRT-LLM that is an error.
NO_REASON = "Async Inference Failure service.invoke_handler_async() failure"


def engine():
    """The sample as `LLM.save` would leave it, with the checkpoint in the engine's place."""
    checkpoint = json.loads((SAMPLE / "config.json").read_text("utf-8"))
    assert checkpoint["n_positions"] == POSITIONS
    settings = {
        "version": "0.21.0rc1",
        "pretrained_config": {
            "architecture": "GPTForCausalLM",
            "dtype": "float32",
            "vocab_size": checkpoint["vocab_size"],
            "hidden_size": checkpoint["n_embd"],
            "num_hidden_layers": checkpoint["n_layer"],
            "num_attention_heads": checkpoint["n_head"],
            "max_position_embeddings": POSITIONS,
        },
        "build_config": {"max_batch_size": 32, "max_input_len": 1024, "max_seq_len": POSITIONS},
    }
    return {
        "config.json": json.dumps(settings).encode(),
        "rank0.engine": (SAMPLE / "model.safetensors").read_bytes(),
        "tokenizer.json": (SAMPLE / "tokenizer.json").read_bytes(),
        "tokenizer_config.json": (SAMPLE / "tokenizer_config.json").read_bytes(),
    }


def environment(config):
    path = os.pathsep.join((str(servers.ROOT), str(STAND_IN)))
    return {"PYTHONPATH": path, **tag_environment(servers.image_tag(config))}


@pytest.fixture(scope="module")
def served(aws_url, tmp_path_factory):
    servers.require("torch", "transformers", "safetensors", "pydantic")
    config = Project(servers.ROOT).config(NAME, "ci").config
    with answering(
        servers.home_of(config.serving.version),
        lambda: tmp_path_factory.mktemp("djl"),
        config,
        engine(),
        aws_url=aws_url,
        **environment(config),
    ) as started:
        yield Served(started)


def test_the_images_own_handler_answers_over_a_stand_in_for_tensorrt_llm(served):
    entry_point = "djl_python.lmi_trtllm.trtllm_async_service"
    assert f"'--recommended-entry-point', '{entry_point}'" in served.server.log
    assert "'--async-mode'" in served.server.log
    # Nothing was built.
    assert "Converting model to TensorRT-LLM artifacts" not in served.server.log


def test_the_settings_of_the_package_arrive_over_a_stand_in_for_tensorrt_llm(served):
    ((path, said),) = re.findall(r"stand-in: engine (\S+) with (\{.*\})", served.server.log)
    assert served.server.has_copied(DIGEST)
    assert "/djl-serving/cache/download/" in path
    expected = {
        # A name of TensorRT-LLM's, which builds for no other; an engine has its precision already.
        "dtype": "float16",
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "trust_remote_code": False,
        "max_batch_size": 32,
        # Of the handler: the package has no lengths, so that the engine's are those of its build.
        "max_input_len": 1024,
        "max_seq_len": None,
        "max_num_tokens": None,
        "backend": None,
        "pytorch_config": None,
    }
    settings = json.loads(said)
    assert {name: settings[name] for name in expected} == expected


@pytest.mark.parametrize("prompt", COMPLETIONS)
def test_a_completion_is_the_samples_over_a_stand_in_for_tensorrt_llm(served, prompt):
    assert served.completed(greedy(prompt)) == {"generated_text": COMPLETIONS[prompt]}


def test_the_number_of_new_tokens_is_kept_over_a_stand_in_for_tensorrt_llm(served):
    for count, text in ((2, " name for"), (4, " name for the Amazon")):
        document = served.completed(greedy(BUCKET, max_new_tokens=count, details=True))
        # Where the text ends by its length, there is no word for it here.
        details = {"finish_reason": None, "generated_tokens": count, "seed": None}
        assert document == {"generated_text": text, "details": details}


def test_a_request_that_says_nothing_gets_30_tokens_over_a_stand_in_for_tensorrt_llm(served):
    """Sampled: its text is not the same for every release of PyTorch."""
    parameters = {"ignore_eos_token": True, "details": True, "seed": 7}
    document = served.completed({"inputs": BUCKET, "parameters": parameters})
    assert (document["details"]["generated_tokens"], document["details"]["seed"]) == (30, 7)


def test_the_prompt_is_before_the_text_where_asked_for_over_a_stand_in_for_tensorrt_llm(served):
    assert served.generate(BUCKET, return_full_text=True) == BUCKET + COMPLETIONS[BUCKET]


def test_requests_together_get_their_own_answers_over_a_stand_in_for_tensorrt_llm(served):
    bodies = [greedy(prompt) for prompt in COMPLETIONS] * 4
    *answers, refused = served.server.post_together(*bodies, greedy(BUCKET * 60))
    assert [(answer.status, answer.document["generated_text"]) for answer in answers] == [
        (200, text) for text in COMPLETIONS.values()
    ] * 4
    assert (refused.status, refused.document["message"]) == (424, NO_REASON)


def test_an_answer_is_streamed_token_by_token_over_a_stand_in_for_tensorrt_llm(served):
    lines = served.streamed(greedy(BUCKET, details=True))
    tokens = [line["token"]["text"] for line in lines]
    assert tokens[:4] == [" name", " for", " the", " Amazon"]
    assert "".join(tokens) == COMPLETIONS[BUCKET]
    assert [line["generated_text"] for line in lines[:-1]] == [None] * (len(lines) - 1)
    assert lines[-1]["generated_text"] == COMPLETIONS[BUCKET]
    assert lines[-1]["details"]["finish_reason"] == "stop"


def test_a_bad_request_ends_no_other_over_a_stand_in_for_tensorrt_llm(served):
    lines = served.while_another_is_answered(b"{", greedy(BUCKET * 60))
    assert len(lines) == 110
    assert lines[-1]["generated_text"].startswith(COMPLETIONS[BUCKET])


def test_of_several_prompts_one_is_answered_over_a_stand_in_for_tensorrt_llm(served):
    """All are computed; the form of the answer has a place for one."""
    document = served.completed({**greedy(BUCKET), "inputs": [BUCKET, BUCKET]})
    assert document == {"generated_text": COMPLETIONS[BUCKET]}


# The reasons of the first five are the server's alone; in the others' place stands what it makes of
# an error of several lines, which it cannot put into an answer's first one.
PROHIBITED = "reasonPhrase contains one of the following prohibited characters"
BAD = [
    (
        b"{",
        424,
        "Input parsing failed: Expecting property name enclosed in double quotes: line 1 column 2 "
        "(char 1)",
    ),
    (b"[]", 424, "Input parsing failed: list indices must be integers or slices, not str"),
    ({}, 424, "Input parsing failed: invalid payload. must contain prompt, inputs, or messages"),
    ({"inputs": BUCKET, "parameters": 5}, 424, "'int' object has no attribute 'pop'"),
    (greedy(BUCKET * 60), 424, NO_REASON),
    (greedy(BUCKET, max_new_tokens=1000), 424, NO_REASON),
    ({**greedy(BUCKET * 60), "stream": True}, 424, NO_REASON),
    ({"inputs": 5}, 500, PROHIBITED),
    (greedy(BUCKET, max_new_tokens="x"), 500, PROHIBITED),
    (greedy(BUCKET, max_new_tokenz=2), 500, PROHIBITED),
]


def test_bad_bodies_are_refused_over_a_stand_in_for_tensorrt_llm(served):
    served.refuses(BAD)


def test_it_speaks_as_openai_does_over_a_stand_in_for_tensorrt_llm(served):
    """There an error has its reason."""
    document = served.completed({"prompt": BUCKET, "max_tokens": 16, "temperature": 0})
    (choice,) = document["choices"]
    assert (choice["text"], choice["finish_reason"]) == (COMPLETIONS[BUCKET], "stop")
    answer = served.server.post({"prompt": BUCKET * 60, "max_tokens": 16, "temperature": 0})
    assert (answer.status, answer.document["code"]) == (400, 400)
    assert "should not exceed max_seq_len (128)" in answer.document["error"]
    # The sample is no chat model: it has no template for one.
    answer = served.server.post({"messages": [{"role": "user", "content": BUCKET}]})
    assert answer.status == 400
    assert "tokenizer.chat_template is not set" in answer.document["error"]


def test_no_worker_gets_ready_with_pytorchs_back_end_over_a_stand_in_for_tensorrt_llm(
    served, aws_url, tmp_path_factory
):
    """Slipway refuses it. The weights are those of `served`: no engine would be built of others."""
    config = Project(servers.ROOT).config(NAME, "ci").config
    files = servers.package_for(config, DIGEST)
    files["serving.properties"] += b"option.backend=pytorch\n"
    with servers.started(
        servers.home_of(config.serving.version),
        tmp_path_factory.mktemp("djl"),
        files,
        aws_url=aws_url,
        **environment(config),
    ) as failing:
        # In 45 s it neither ended nor answered; that is not waited for.
        eventually(lambda: "Restarting python worker" in failing.log, START_SECONDS)
        # Another thread of DJL Serving copies the worker's last lines, and may come later.
        argument = "unexpected keyword argument 'enable_overlap_scheduler'"
        error = f"TypeError: PyTorchConfig.__init__() got an {argument}"
        eventually(lambda: error in failing.log, START_SECONDS)
