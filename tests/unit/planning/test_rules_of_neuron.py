"""Inferentia and Trainium: what is refused and what is only said, word for word, and what not."""

import dataclasses
import inspect
from typing import Any

import pytest

from slipway.facts.instances import instance_types
from slipway.planning.advice import Advice
from slipway.planning.families import situation_of
from slipway.planning.families.custom import advice as custom_advice
from slipway.planning.families.custom import rules as custom_rules
from slipway.planning.families.neuron import advice, rules
from tests.support.projects import LOCAL, PRODUCTION, model_config
from tests.unit.planning.neuron_sections import LATENCY, NEURON, NEURONX
from tests.unit.planning.rule_findings import findings, on

AWS = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
TORCHSERVE = f"{AWS}/pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04"
TORCHSERVE_X = f"{AWS}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.31.1-ubuntu24.04"
MULTI_MODEL_SERVER = f"{AWS}/huggingface-pytorch-inference-neuron:1.10.2"
SDK_2_30 = f"{AWS}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
SDK_2_29 = f"{AWS}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"
TOOLKIT = f"{AWS}/huggingface-pytorch-inference-neuronx:2.8.0"
OWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
HUB = {"source": "hub", "repository": "bert-base-uncased", "revision": "a" * 40}
BERT = {"family": "bert", "parameters": 110_000_000}
DISTILBERT = {"family": "distilbert", "parameters": 66_000_000}


def neuron(**more: Any) -> dict[str, Any]:
    return {"model": BERT, "serving": NEURON | more}


def neuronx(**more: Any) -> dict[str, Any]:
    return {"model": BERT, "serving": NEURONX | more}


def custom(image: str, **environment: str) -> dict[str, Any]:
    return {"serving": {"container": "custom", "image_uri": image, "environment": environment}}


def pool(*names: str) -> dict[str, Any]:
    return {"endpoint": {"instances": list(names)}}


def release(target: str) -> dict[str, Any]:
    return {"artifacts": {"release": {"path": "build/bert", "target": target}}}


def warnings(say: Advice, **sections: Any) -> list[tuple[str, str]]:
    situation = situation_of(model_config(**sections), LOCAL)
    return [(item.code, item.message) for item in say(situation)]


class TestHardware:
    @pytest.mark.parametrize(
        ("name", "has"),
        [("ml.c5.xlarge", "no accelerator"), ("ml.g4dn.12xlarge", "4 x NVIDIA T4")],
    )
    def test_the_container_needs_a_neuron_device(self, name, has):
        assert findings(rules.neuron_needs_device, endpoint=on(name), **neuron()) == [
            (
                "endpoint.instances[0]",
                f"{name} has {has}; the container `neuron` needs AWS Inferentia or Trainium",
                "Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`.",
            )
        ]
        # One thing is wrong, not two.
        for rule in set(rules.RULES) - {rules.neuron_needs_device}:
            assert findings(rule, endpoint=on(name), **neuron()) == []

    @pytest.mark.parametrize("name", ["ml.inf1.xlarge", "ml.inf2.xlarge", "ml.trn2.48xlarge"])
    def test_any_neuron_device_is_one(self, name):
        assert findings(rules.neuron_needs_device, endpoint=on(name), **neuron()) == []

    @pytest.mark.parametrize("what", ["accelerator", "cores"])
    def test_cores_that_nobody_counted_carry_no_workers(self, what):
        inf1 = instance_types()["ml.inf1.xlarge"]
        assert inf1.accelerator is not None
        if what == "cores":
            vague = dataclasses.replace(inf1.accelerator, neuron_cores_per_device=None)
            unknown = dataclasses.replace(inf1, accelerator=vague)
        else:
            unknown = dataclasses.replace(inf1, accelerator=None, accelerator_known=False)
        assert findings(rules.neuron_needs_device, LOCAL, unknown, **neuron()) == [
            (
                "endpoint.instances[0]",
                "the number of NeuronCores of ml.inf1.xlarge is not known, and the number of "
                "workers follows from it",
                "Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`.",
            )
        ]

    def test_each_generation_has_its_images(self):
        rule = rules.image_fits_generation
        assert findings(rule, endpoint=on("ml.inf2.24xlarge"), **neuron()) == [
            (
                "endpoint.instances[0]",
                "`framework: neuron` is for inf1; ml.inf2.24xlarge has 6 x AWS Inferentia2",
                "Set `framework: neuronx`, or choose an inf1 type, for example `ml.inf1.xlarge`.",
            )
        ]
        mixed = pool("ml.inf2.xlarge", "ml.inf1.2xlarge")
        assert findings(rule, **mixed, **neuronx()) == [
            (
                "endpoint.instances[1]",
                "`framework: neuronx` is for inf2 and Trainium; ml.inf1.2xlarge has 1 x AWS "
                "Inferentia",
                "Set `framework: neuron`, or choose an inf2 or trn1 type, for example "
                "`ml.inf2.xlarge`.",
            )
        ]
        for name in ("ml.inf2.xlarge", "ml.trn1.2xlarge", "ml.trn1n.32xlarge", "ml.trn2.48xlarge"):
            assert findings(rule, endpoint=on(name), **neuronx()) == []
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron()) == []

    def test_a_runtime_that_the_hosts_driver_is_too_old_for_is_refused(self):
        rule, inf2 = custom_rules.driver_runs_the_sdk, on("ml.inf2.xlarge")
        assert findings(rule, endpoint=inf2, **custom(SDK_2_30)) == [
            (
                "serving.image_uri",
                "AWS's image has Neuron SDK 2.30.0, whose runtime 2.32 needs Neuron driver 2.27; "
                "the newest host image, al2-ami-sagemaker-inference-neuron-2, has 2.19",
                "Choose an image of an older SDK, 2.29.1 for example.",
            )
        ]
        assert findings(rule, endpoint=inf2, **custom(SDK_2_29)) == []
        assert findings(rule, endpoint=inf2, **custom(OWN)) == []
        # Of this one AWS says neither.
        assert findings(rule, endpoint=inf2, **custom(TORCHSERVE_X)) == []
        say = custom_advice.driver_may_be_too_old
        assert warnings(say, endpoint=inf2, **custom(TORCHSERVE_X)) == [
            (
                "neuron-driver",
                "The image's Neuron SDK 2.31.1 may not start on "
                "al2-ami-sagemaker-inference-neuron-2, whose Neuron driver is 2.19: AWS's release "
                "notes announced a fix for the runtime before it, which needs driver 2.27, and do "
                "not say that this one has it. SDK 2.29.1 is the newest without that doubt.",
            )
        ]
        for image in (SDK_2_29, SDK_2_30, OWN, TOOLKIT):
            assert warnings(say, endpoint=inf2, **custom(image)) == []

    def test_awss_own_images_are_held_to_it_too(self):
        rule = custom_rules.aws_image_fits_hardware
        assert findings(rule, endpoint=on("ml.inf2.xlarge"), **custom(TORCHSERVE)) == [
            (
                "endpoint.instances[0]",
                "AWS's image pytorch-inference-neuron is for inf1; ml.inf2.xlarge has 1 x AWS "
                "Inferentia2",
                "Choose an inf1 type, for example `ml.inf1.xlarge`, or another image.",
            )
        ]
        assert findings(rule, endpoint=on("ml.g5.xlarge"), **custom(TORCHSERVE_X)) == [
            (
                "endpoint.instances[0]",
                "AWS's image pytorch-inference-neuronx is for inf2 and Trainium; ml.g5.xlarge has "
                "1 x NVIDIA A10G",
                "Choose an inf2 or trn1 type, for example `ml.inf2.xlarge`, or another image.",
            )
        ]
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **custom(TORCHSERVE)) == []
        assert findings(rule, endpoint=on("ml.trn2.48xlarge"), **custom(TORCHSERVE_X)) == []
        assert findings(rule, endpoint=on("ml.inf2.xlarge"), **custom(OWN)) == []
        plain = instance_types()["ml.c5.xlarge"]
        unknown = dataclasses.replace(plain, accelerator_known=False)
        assert findings(rule, LOCAL, unknown, **custom(TORCHSERVE)) == []

    def test_nothing_is_compiled_for_trainium2(self):
        rule = rules.generation_can_be_compiled_for
        assert findings(rule, endpoint=on("ml.trn2.48xlarge"), **neuronx()) == [
            (
                "endpoint.instances[0]",
                "ml.trn2.48xlarge has 16 x AWS Trainium2; models are compiled for inf1, inf2 and "
                "trn1 only",
                "Choose a type of one of these families, for example `ml.inf2.xlarge`.",
            )
        ]
        for name in ("ml.inf2.xlarge", "ml.trn1.2xlarge", "ml.trn1n.32xlarge"):
            assert findings(rule, endpoint=on(name), **neuronx()) == []


class TestModel:
    def test_the_container_serves_encoders(self):
        rule = rules.model_is_an_encoder
        gpt2 = {"model": {"family": "gpt2"}, "serving": NEURON}
        assert findings(rule, **gpt2) == [
            (
                "model.family",
                "gpt2 generates text; the container `neuron` serves encoders: bert, distilbert, "
                "roberta, xlm_roberta",
                "Choose another container, or `family: other` for an encoder that is not listed.",
            )
        ]

    @pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "xlm_roberta", "other"])
    def test_these_are_encoders(self, family):
        sections = neuron() | {"model": {"family": family}}
        assert findings(rules.model_is_an_encoder, **sections) == []


class TestPipelines:
    def test_only_inf1_has_them(self):
        rule = rules.pipeline_is_for_latency
        expected = [
            (
                "serving.pipeline_cores",
                "there is no NeuronCore Pipeline with `framework: neuronx`: inf1 alone has it",
                "Remove `pipeline_cores`.",
            )
        ]
        assert findings(rule, **neuronx(pipeline_cores=2, **LATENCY)) == expected
        # One thing is wrong, not two.
        assert findings(rule, **neuronx(pipeline_cores=2)) == expected
        assert findings(rule, **neuronx(**LATENCY)) == []

    def test_data_parallel_is_without(self):
        rule = rules.pipeline_is_for_latency
        assert findings(rule, **neuron(pipeline_cores=4)) == [
            (
                "serving.pipeline_cores",
                "`objective: throughput` is data parallel, a copy of the model on each core; a "
                "copy in a pipeline cannot be data parallel",
                "Remove `pipeline_cores`, or set `objective: latency`.",
            )
        ]
        assert findings(rule, **neuron(pipeline_cores=4, **LATENCY)) == []
        assert findings(rule, **neuron()) == []

    def test_they_are_no_longer_than_the_instance(self):
        rule = rules.pipeline_fits_cores
        inf1 = {"endpoint": on("ml.inf1.6xlarge")}
        assert findings(rule, **inf1, **neuron(pipeline_cores=17, **LATENCY)) == [
            (
                "serving.pipeline_cores",
                "a pipeline of 17 NeuronCores does not fit ml.inf1.6xlarge, which has 16",
                "Use 16 or fewer, or leave it out: it then follows the number of weights.",
            )
        ]
        # One thing is wrong, not two.
        sections = inf1 | neuron(pipeline_cores=17, workers=2, **LATENCY)
        assert findings(rules.workers_fit_cores, **sections) == []
        assert findings(rule, **inf1, **neuron(pipeline_cores=16, **LATENCY)) == []
        # AWS's formula is cut to what there is: 24 for this model.
        assert findings(rule, **inf1, **neuron(**LATENCY)) == []

    def test_the_fallback_types_have_the_cores_too(self):
        sections = pool("ml.inf1.6xlarge", "ml.inf1.xlarge") | neuron(pipeline_cores=16, **LATENCY)
        assert [message for _, message, _ in findings(rules.pipeline_fits_cores, **sections)] == [
            "a pipeline of 16 NeuronCores does not fit ml.inf1.xlarge, which has 4"
        ]
        # One thing is wrong, not two.
        assert findings(rules.placements_agree, **sections) == []


class TestWorkers:
    def test_cores_are_not_shared(self):
        rule = rules.workers_fit_cores
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron(workers=5)) == [
            (
                "serving.workers",
                "5 workers of 1 NeuronCore take 5 NeuronCores; ml.inf1.xlarge has 4",
                "Use 4 at most, or leave it out: it is then as many as the cores carry.",
            )
        ]
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron(workers=4)) == []
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron()) == []

    def test_each_takes_a_whole_pipeline(self):
        rule = rules.workers_fit_cores
        inf1 = {"endpoint": on("ml.inf1.6xlarge")}
        three = neuron(workers=3, pipeline_cores=6, **LATENCY)
        assert findings(rule, **inf1, **three) == [
            (
                "serving.workers",
                "3 workers of 6 NeuronCores take 18 NeuronCores; ml.inf1.6xlarge has 16",
                "Use 2 at most, or leave it out: it is then as many as the cores carry.",
            )
        ]
        two = neuron(workers=2, pipeline_cores=6, **LATENCY)
        assert findings(rule, **inf1, **two) == []


class TestPools:
    def test_one_environment_is_for_all_types(self):
        rule = rules.placements_agree
        mixed = pool("ml.inf1.xlarge", "ml.inf1.2xlarge", "ml.inf1.6xlarge")
        assert findings(rule, **mixed, **neuron()) == [
            (
                "endpoint.instances[2]",
                "ml.inf1.xlarge takes 4 workers of 1 NeuronCore, ml.inf1.6xlarge 16 workers of 1 "
                "NeuronCore; one environment is for both: SAGEMAKER_MODEL_SERVER_WORKERS, "
                "SLIPWAY_WORKERS",
                "Choose types with as many NeuronCores, or set `workers` to what all of them "
                "carry.",
            )
        ]
        assert findings(rule, **mixed, **neuron(workers=4)) == []
        assert findings(rule, **pool("ml.inf1.xlarge", "ml.inf1.2xlarge"), **neuron()) == []
        assert findings(rule, **pool("ml.inf2.xlarge", "ml.trn1.2xlarge"), **neuronx()) == []

    def test_pipelines_of_one_length(self):
        rule = rules.placements_agree
        mixed = pool("ml.inf1.6xlarge", "ml.inf1.24xlarge")
        assert findings(rule, **mixed, **neuron(**LATENCY)) == [
            (
                "endpoint.instances[1]",
                "ml.inf1.6xlarge takes 1 worker of 16 NeuronCores, ml.inf1.24xlarge 2 workers of "
                "24 NeuronCores; one environment is for both: NEURON_RT_NUM_CORES, "
                "SAGEMAKER_MODEL_SERVER_WORKERS, SLIPWAY_PIPELINE_CORES, SLIPWAY_WORKERS",
                "Choose types with as many NeuronCores, or set `pipeline_cores` and `workers` to "
                "what all of them carry.",
            )
        ]
        settled = neuron(pipeline_cores=16, workers=1, **LATENCY)
        assert findings(rule, **mixed, **settled) == []

    def test_variants_share_it_as_well(self):
        variants = [
            {"name": "a", "weight": 1},
            {"name": "b", "weight": 1, "instances": ["ml.inf2.24xlarge"]},
        ]
        endpoint = on("ml.inf2.xlarge") | {"variants": variants}
        found = findings(rules.placements_agree, endpoint=endpoint, **neuronx())
        assert [(field, message) for field, message, _ in found] == [
            (
                "endpoint.variants[1].instances[0]",
                "ml.inf2.xlarge takes 2 workers of 1 NeuronCore, ml.inf2.24xlarge 12 workers of 1 "
                "NeuronCore; one environment is for both: SAGEMAKER_MODEL_SERVER_WORKERS, "
                "SLIPWAY_WORKERS",
            )
        ]

    def test_two_generations_are_another_rules(self):
        mixed = pool("ml.inf1.xlarge", "ml.inf2.xlarge")
        assert findings(rules.placements_agree, **mixed, **neuron()) == []
        assert len(findings(rules.image_fits_generation, **mixed, **neuron())) == 1


class TestBatches:
    def test_latency_without_a_pipeline_waits_for_no_batch(self):
        rule = rules.latency_waits_for_no_batch
        types = pool("ml.inf2.xlarge", "ml.trn1.2xlarge")
        assert findings(rule, **types, **neuronx(batch_size=2, **LATENCY)) == [
            (
                "serving.batch_size",
                "`objective: latency` serves every request by itself on ml.inf2.xlarge; batches "
                "of 2 would make it wait for others",
                "Remove `batch_size`, or set `objective: throughput`.",
            )
        ]
        assert findings(rule, **types, **neuronx(batch_size=1, **LATENCY)) == []
        assert findings(rule, **types, **neuronx(batch_size=2)) == []
        pipeline = neuron(batch_size=2, **LATENCY)
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **pipeline) == []

    def test_the_queue_has_room_for_one(self):
        rule = rules.queue_holds_a_batch
        assert findings(rule, **neuron(batch_size=6, max_queue_length=5)) == [
            (
                "serving.max_queue_length",
                "a queue of 5 never holds a batch of 6",
                "Raise `max_queue_length` or lower `batch_size`.",
            )
        ]
        assert findings(rule, **neuron(batch_size=6, max_queue_length=6)) == []

    @pytest.mark.parametrize(
        ("lengths", "message", "remedy"),
        [
            (
                [64, 32, 128],
                "sequence lengths must ascend, and 64, 32, 128 do not",
                "Write `sequence_lengths: [32, 64, 128]`.",
            ),
            (
                [32, 32, 128],
                "sequence lengths must ascend, and 32, 32, 128 do not",
                "Write `sequence_lengths: [32, 128]`.",
            ),
            (
                [32, 64],
                "the longest of 32, 64 is not `sequence_length: 128`, which is the longest text "
                "that the endpoint takes",
                "End the list with 128, or change `sequence_length`.",
            ),
        ],
    )
    def test_buckets_go_up_to_the_longest_text(self, lengths, message, remedy):
        assert findings(rules.buckets_end_at_the_longest, **neuron(sequence_lengths=lengths)) == [
            ("serving.sequence_lengths", message, remedy)
        ]

    @pytest.mark.parametrize("lengths", [None, [128], [8, 32, 128]])
    def test_buckets_that_do(self, lengths):
        rule = rules.buckets_end_at_the_longest
        assert findings(rule, **neuron(sequence_lengths=lengths)) == []


COMPILED = {
    "artifacts": {
        "release": None,
        "weights": {"source": "path", "path": "build/bert"},
        "compile": {"instance": "ml.c5.4xlarge"},
    }
}


class TestPrecision:
    def test_inf1_has_none_of_four_bytes(self):
        rule = rules.inf1_has_no_single_precision
        assert findings(rule, **neuron(dtype="fp32"), **COMPILED) == [
            (
                "serving.dtype",
                "inf1 computes every matrix product in bf16 or fp16, and so nothing can be "
                "compiled with `dtype: fp32`",
                "Set `dtype: bf16`, or `fp16` for more digits and a smaller range.",
            )
        ]

    def test_others_and_what_is_compiled_elsewhere_may_have_it(self):
        rule = rules.inf1_has_no_single_precision
        assert findings(rule, **neuron(dtype="fp16"), **COMPILED) == []
        assert findings(rule, **neuronx(dtype="fp32"), **COMPILED) == []
        assert findings(rule, **neuron(dtype="fp32"), **release("inf1")) == []


class TestCompiled:
    @pytest.mark.parametrize(
        ("name", "has", "target", "wrong", "remedy"),
        [
            ("ml.inf1.xlarge", "1 x AWS Inferentia", "inf1", "inf2",
             "Compile the model for inf1, or choose a type of inf2."),
            ("ml.inf2.xlarge", "1 x AWS Inferentia2", "inf2", "trn1",
             "Compile the model for inf2, or choose a type of trn1."),
            ("ml.trn1.2xlarge", "1 x AWS Trainium", "trn1", "inf2",
             "Compile the model for trn1, or choose a type of inf2."),
            ("ml.trn1n.32xlarge", "16 x AWS Trainium", "trn1", "sm75",
             "Compile the model for trn1."),
        ],
    )  # fmt: skip
    def test_a_release_runs_on_its_family(self, name, has, target, wrong, remedy):
        rule, endpoint = rules.release_fits_family, on(name)
        assert findings(rule, PRODUCTION, endpoint=endpoint, **neuron(), **release(wrong)) == [
            (
                "artifacts.release.target",
                f"the model was compiled for {wrong}, but {name} has {has} ({target})",
                remedy,
            )
        ]
        right = release(target)
        assert findings(rule, PRODUCTION, endpoint=endpoint, **neuron(), **right) == []
        # A sample runs on the CPU, wherever.
        assert findings(rule, LOCAL, endpoint=endpoint, **neuron(), **release(wrong)) == []

    def test_a_family_is_named_once(self):
        rule = rules.release_fits_family
        types = pool("ml.inf2.xlarge", "ml.inf2.8xlarge", "ml.trn1.2xlarge")
        found = findings(rule, PRODUCTION, **types, **neuronx(), **release("inf1"))
        assert [message for _, message, _ in found] == [
            "the model was compiled for inf1, but ml.inf2.xlarge has 1 x AWS Inferentia2 (inf2)",
            "the model was compiled for inf1, but ml.trn1.2xlarge has 1 x AWS Trainium (trn1)",
        ]
        nothing = {"artifacts": {"release": None}}
        assert findings(rule, PRODUCTION, **types, **neuronx(), **nothing) == []
        trainium2 = {"endpoint": on("ml.trn2.48xlarge")}
        assert findings(rule, PRODUCTION, **trainium2, **neuronx(), **release("inf1")) == []

    def test_what_is_compiled_once_runs_on_one_family(self):
        rule = rules.compiled_for_one_family
        compiled = {
            "artifacts": {
                "release": None, "weights": HUB, "compile": {"instance": "ml.c5.4xlarge"},
            }
        }  # fmt: skip
        mixed = pool("ml.inf2.xlarge", "ml.trn1.2xlarge")
        assert findings(rule, **mixed, **neuronx(), **compiled) == [
            (
                "endpoint.instances[1]",
                "ml.inf2.xlarge needs a model compiled for inf2, ml.trn1.2xlarge one for trn1; "
                "there is one model for both",
                "Choose types of one family.",
            )
        ]
        alike = pool("ml.inf2.xlarge", "ml.inf2.8xlarge")
        assert findings(rule, **alike, **neuronx(), **compiled) == []
        # Of a compiled release the rule above says which type does not fit.
        assert findings(rule, **mixed, **neuronx(), **release("inf2")) == []
        # So does the image, of two generations.
        generations = pool("ml.inf1.xlarge", "ml.inf2.xlarge")
        assert findings(rule, **generations, **neuronx(), **compiled) == []


class TestAdvice:
    def test_cores_that_no_pipeline_takes(self):
        say, big = advice.idle_cores, on("ml.inf1.24xlarge")
        sections = {"model": DISTILBERT, "serving": NEURON | LATENCY}
        assert warnings(say, endpoint=big, **sections) == [
            (
                "neuron-cores-idle",
                "5 workers of 12 NeuronCores leave 4 of the 64 of ml.inf1.24xlarge idle.",
            )
        ]
        sixteen = neuron(pipeline_cores=16, **LATENCY)
        assert warnings(say, endpoint=big, **sixteen) == []

    def test_cores_that_the_workers_leave(self):
        say, endpoint = advice.idle_cores, on("ml.inf2.xlarge")
        assert warnings(say, endpoint=endpoint, **neuronx(workers=1)) == [
            (
                "neuron-cores-idle",
                "1 worker of 1 NeuronCore leaves 1 of the 2 of ml.inf2.xlarge idle.",
            )
        ]
        assert warnings(say, endpoint=endpoint, **neuronx(workers=2)) == []
        # More than there are is refused.
        assert warnings(say, endpoint=endpoint, **neuronx(workers=3)) == []

    def test_a_pipeline_wants_to_be_full(self):
        say, endpoint = advice.workers_not_busy, on("ml.inf1.6xlarge")
        assert warnings(say, endpoint=endpoint, **neuron(expected_concurrency=11, **LATENCY)) == [
            (
                "neuron-pipeline-not-full",
                "With 11 requests in flight the pipelines of ml.inf1.6xlarge have the latency, "
                "but not the throughput: about 12 fill them.",
            )
        ]
        full = neuron(expected_concurrency=12, **LATENCY)
        assert warnings(say, endpoint=endpoint, **full) == []
        assert warnings(say, endpoint=endpoint, **neuron(**LATENCY)) == []

    def test_batches_want_to_be_full(self):
        say, endpoint = advice.workers_not_busy, on("ml.inf1.xlarge")
        assert warnings(say, endpoint=endpoint, **neuron(batch_size=6, expected_concurrency=1)) == [
            (
                "neuron-batches-not-full",
                "With 1 request in flight some cores of ml.inf1.xlarge wait or compute padding: 4 "
                "workers with batches of 6 take 24.",
            )
        ]
        for concurrency, expected in ((23, 1), (24, 0)):
            sections = neuron(batch_size=6, expected_concurrency=concurrency)
            assert len(warnings(say, endpoint=endpoint, **sections)) == expected

    def test_latency_leaves_cores_waiting_on_purpose(self):
        sections = neuronx(expected_concurrency=1, **LATENCY)
        assert warnings(advice.workers_not_busy, endpoint=on("ml.inf2.xlarge"), **sections) == []

    def test_the_variable_of_the_first_runtime(self):
        say, inf1 = custom_advice.group_sizes_have_no_effect, on("ml.inf1.xlarge")
        old = custom(OWN, NEURONCORE_GROUP_SIZES="1,1,1,1")
        assert warnings(say, endpoint=inf1, **old) == [
            (
                "neuroncore-group-sizes",
                "NEURONCORE_GROUP_SIZES has had no effect since Neuron SDK 1.20: use "
                "NEURON_RT_NUM_CORES, the cores of each process.",
            )
        ]
        assert warnings(say, endpoint=inf1, **custom(OWN, NEURON_RT_NUM_CORES="1")) == []
        assert warnings(say, endpoint=on("ml.g4dn.xlarge"), **old) == []

    def test_awss_servers_count_processors(self):
        say, inf1 = custom_advice.workers_follow_processors, on("ml.inf1.6xlarge")
        expected = [
            (
                "neuron-workers-unset",
                "Without SAGEMAKER_MODEL_SERVER_WORKERS the image starts a worker for each of the "
                "24 vCPUs of ml.inf1.6xlarge, and those beyond its 16 NeuronCores fail: set it to "
                "16 at most.",
            )
        ]
        assert warnings(say, endpoint=inf1, **custom(TORCHSERVE)) == expected
        assert warnings(say, endpoint=inf1, **custom(MULTI_MODEL_SERVER)) == expected
        told = custom(TORCHSERVE, SAGEMAKER_MODEL_SERVER_WORKERS="16")
        assert warnings(say, endpoint=inf1, **told) == []
        # As many vCPUs as cores.
        assert warnings(say, endpoint=on("ml.inf1.xlarge"), **custom(TORCHSERVE)) == []
        # Of other servers nothing is known.
        assert warnings(say, endpoint=inf1, **custom(OWN)) == []
        assert warnings(say, endpoint=on("ml.inf2.xlarge"), **custom(TOOLKIT)) == []

    def test_torchserves_own_variables_leave_one_worker(self):
        say, inf2 = custom_advice.torchserve_variables_leave_one_worker, on("ml.inf2.24xlarge")
        batching = custom(TORCHSERVE_X, SAGEMAKER_TS_BATCH_SIZE="8")
        assert warnings(say, endpoint=inf2, **batching) == [
            (
                "torchserve-one-worker",
                "SAGEMAKER_TS_BATCH_SIZE is set, and so the default of SAGEMAKER_TS_MIN_WORKERS "
                "and SAGEMAKER_TS_MAX_WORKERS is 1: set them too, or most of the 12 NeuronCores "
                "of ml.inf2.24xlarge may stay idle.",
            )
        ]
        # One thing is wrong, not two.
        assert warnings(custom_advice.workers_follow_processors, endpoint=inf2, **batching) == []
        half = custom(TORCHSERVE_X, SAGEMAKER_TS_MIN_WORKERS="12")
        assert warnings(say, endpoint=inf2, **half) == [
            (
                "torchserve-one-worker",
                "SAGEMAKER_TS_MIN_WORKERS is set, and so the default of SAGEMAKER_TS_MAX_WORKERS "
                "is 1: set it too, or most of the 12 NeuronCores of ml.inf2.24xlarge may stay "
                "idle.",
            )
        ]
        both = custom(TORCHSERVE_X, SAGEMAKER_TS_MIN_WORKERS="12", SAGEMAKER_TS_MAX_WORKERS="12")
        assert warnings(say, endpoint=inf2, **both) == []
        assert warnings(say, endpoint=inf2, **custom(OWN, SAGEMAKER_TS_BATCH_SIZE="8")) == []


@pytest.mark.parametrize(
    ("sections", "endpoint"),
    [
        (neuron(**LATENCY), "ml.inf1.6xlarge"),
        (neuron(batch_size=6), "ml.inf1.6xlarge"),
        (neuron(batch_size=6), "ml.inf1.xlarge"),
        (neuronx(batch_size=8), "ml.inf2.xlarge"),
        (neuronx(batch_size=1, **LATENCY), "ml.inf2.xlarge"),
    ],
)
def test_the_published_set_ups_pass_every_rule(sections, endpoint):
    target = release(endpoint.split(".")[1])
    for rule in rules.RULES:
        assert findings(rule, PRODUCTION, endpoint=on(endpoint), **sections, **target) == []
    for say in advice.ADVICE:
        assert warnings(say, endpoint=on(endpoint), **sections) == []


@pytest.mark.parametrize(
    ("module", "listed"), [(rules, rules.RULES), (advice, advice.ADVICE)], ids=["rules", "advice"]
)
def test_every_function_is_listed(module, listed):
    functions = {
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert {function.__name__ for function in listed} == functions
