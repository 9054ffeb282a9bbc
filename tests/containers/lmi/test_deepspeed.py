"""How the DeepSpeed handler loads and calls its libraries, which are stand-ins here."""

import json
import re
import sys

import pytest

from tests.containers.lmi import libraries
from tests.containers.lmi.libraries import GPT2
from tests.containers.lmi.server import StandInOutput

BERT = {"model_type": "bert", "max_position_embeddings": 16}


def test_the_stand_in_engine_gets_the_options_as_what_they_are(deepspeed_server, journal):
    deepspeed_server().start(
        model_id="/mnt/weights", tensor_parallel_degree="4", dtype="bf16", max_tokens="512"
    )
    network, settings = journal.loaded
    assert network == {
        "path": "/mnt/weights",
        "torch_dtype": "torch.bfloat16",
        "low_cpu_mem_usage": True,
        "trust_remote_code": False,
    }
    assert settings == {
        "replace_with_kernel_inject": True,
        "tensor_parallel": {"tp_size": 4},
        "max_tokens": 512,
        "enable_cuda_graph": False,
        "dtype": "torch.bfloat16",
    }


def test_without_model_id_the_package_holds_the_weights_and_int8_is_made_from_fp16(
    deepspeed_server, journal
):
    deepspeed_server().start(dtype="int8")
    network, settings = journal.loaded
    assert network["path"] == "/opt/ml/model"
    assert (network["torch_dtype"], settings["dtype"]) == ("torch.float16", "torch.int8")


def test_a_partitioned_checkpoint_is_read_by_deepspeed_alone(deepspeed_server, journal):
    deepspeed_server().start(model_id="/mnt/weights", checkpoint="ds_inference_config.json")
    meta, network, settings = journal.loaded
    assert meta == {"on_device": "meta", "dtype": "torch.float16"}
    assert "path" not in network
    assert settings["checkpoint"] == "/mnt/weights/ds_inference_config.json"
    assert settings["base_dir"] == "/mnt/weights"


@pytest.mark.parametrize(
    ("config", "options", "most"),
    [
        (GPT2, {"max_tokens": "10"}, 9),
        # Alibi has no positions.
        ({"model_type": "bloom", "architectures": ["BloomModel"]}, {}, 1023),
    ],
)
def test_the_cache_of_the_kernels_limits_the_positions(deepspeed_server, config, options, most):
    server = deepspeed_server(config).started(**options)
    message = f"Input 0 has {most + 1} tokens; the limit is {most}."
    assert server.refusal({"inputs": "a" * (most + 1)}) == message


def test_shorter_prompts_are_padded_before_their_text(server, journal):
    """The stand-in engine refuses what is padded behind."""
    status, document = server.post(
        {"inputs": ["abc", "x", "de"], "parameters": {"max_new_tokens": 2}}
    )
    assert status == 200
    assert [entry["generated_text"] for entry in document] == ["de", "yz", "fg"]
    assert journal.calls[0]["prompts"] == ["abc", "x", "de"]


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({}, {"temperature": 1.0, "top_k": 0, "top_p": 1.0}),
        ({"temperature": 0.5, "top_k": 7}, {"temperature": 0.5, "top_k": 7, "top_p": 1.0}),
        ({"top_p": 0.25}, {"temperature": 1.0, "top_k": 0, "top_p": 0.25}),
    ],
)
def test_what_is_left_out_of_a_draw_is_off(server, journal, parameters, arguments):
    body = {"inputs": "a", "parameters": {"do_sample": True, "seed": 5, **parameters}}
    assert server.post(body)[0] == 200
    assert journal.calls == [{"prompts": ["a"], "repetition_penalty": 1.0, **arguments}]
    assert journal.seeds == [5]


def test_the_processes_of_a_tensor_parallel_model_draw_alike(load_script, journal):
    torch = libraries.torch(journal)
    load_script(
        torch,
        libraries.deepspeed(journal, torch),
        libraries.transformers(journal, GPT2),
        libraries.module("djl_python", Output=StandInOutput),
    )
    engine = sys.modules["slipway_deepspeed"]
    body = b'{"inputs": ["ab", "c"], "parameters": {"do_sample": true}}'
    processes = [engine.load({"model_dir": "/opt/ml/model"}) for _ in range(2)]
    first, second = (
        [process.predict([process.parse(body)]) for _ in range(2)] for process in processes
    )
    assert first == second
    assert first[0] != first[1]


def test_a_type_without_kernels_is_refused(deepspeed_server):
    server = deepspeed_server({"model_type": "t5", "architectures": []})
    message = (
        "serving.properties: DeepSpeed has no kernels for models of type t5, only for bert, "
        "bloom, gpt2, gpt_neo, gpt_neox, gptj, opt: take the image's own handler, without a script"
    )
    with pytest.raises(Exception, match=f"^{re.escape(message)}$"):
        server.start()


@pytest.mark.parametrize(
    ("architecture", "body", "expected"),
    [
        (
            "BertForSequenceClassification",
            {"inputs": ["ab", "c"], "parameters": {"top_k": 2}},
            [
                [{"label": "ab-0", "score": 1.0}, {"label": "ab-1", "score": 0.5}],
                [{"label": "c-0", "score": 1.0}, {"label": "c-1", "score": 0.5}],
            ],
        ),
        ("BertForSequenceClassification", {"inputs": "ab"}, [[{"label": "ab-0", "score": 1.0}]]),
        (
            "BertForMaskedLM",
            {"inputs": "a [MASK]", "parameters": {"top_k": 1}},
            [[{"label": "a [MASK]-0", "score": 1.0}]],
        ),
        (
            "BertForTokenClassification",
            {"inputs": "Ada"},
            [[{"entity": "B-PER", "score": 0.5, "index": 1, "word": "Ada"}]],
        ),
    ],
)
def test_the_tasks_of_bert_answer_a_list_for_each_text(
    deepspeed_server, architecture, body, expected
):
    server = deepspeed_server({**BERT, "architectures": [architecture]}).started()
    assert server.post(body) == (200, expected)
    assert server.post_together(body, body) == [(200, expected)] * 2


@pytest.mark.parametrize(
    ("task", "body", "message"),
    [
        ("fill-mask", {"inputs": "no mask"}, "Input 0 has 0 [MASK]; it must have one."),
        ("fill-mask", {"inputs": "[MASK] [MASK]"}, "Input 0 has 2 [MASK]; it must have one."),
        ("fill-mask", {"inputs": ["[MASK]" * 3]}, "Input 0 has 18 tokens; the limit is 16."),
        (
            "text-classification",
            {"inputs": "a", "parameters": {"top_k": 0}},
            "top_k=0 is not within 1 to 1000.",
        ),
        (
            "text-classification",
            {"inputs": "a", "parameters": {"max_new_tokens": 3}},
            "Unknown parameter 'max_new_tokens'; allowed: top_k.",
        ),
        (
            "token-classification",
            {"inputs": "a", "parameters": {"top_k": 3}},
            "Unknown parameter 'top_k'; there are none.",
        ),
    ],
)
def test_bad_requests_to_the_tasks_of_bert(deepspeed_server, task, body, message):
    server = deepspeed_server({**BERT, "architectures": ["BertModel"]}).started(task=task)
    assert server.refusal(body) == message


def test_one_text_that_fails_bert_fails_no_other_request(deepspeed_server):
    server = deepspeed_server(
        {**BERT, "architectures": ["BertForSequenceClassification"]}
    ).started()
    answers = server.post_together({"inputs": "!"}, {"inputs": "a"})
    assert answers[0][1]["error"]["code"] == "model_failure"
    assert answers[1] == (200, [[{"label": "a-0", "score": 1.0}]])
    assert "secret" not in json.dumps(answers)
