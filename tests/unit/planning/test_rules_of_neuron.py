"""Workers, pipelines and batches on NeuronCores: refusals word for word, and configs that pass."""

import pytest

from slipway.planning.families.neuron import advice, rules
from slipway.planning.partial import rules_of
from tests.support.projects import PRODUCTION
from tests.unit.planning.neuron_findings import (
    LATENCY,
    NEURON,
    neuron,
    neuronx,
    pool,
    release,
    warnings,
)
from tests.unit.planning.rule_findings import findings, on, only


class TestModel:
    def test_model_is_an_encoder(self):
        rule = rules.model_is_an_encoder
        gpt2 = {"model": {"family": "gpt2"}, "serving": NEURON}
        assert only(findings(rule, **gpt2)) == (
            "model.family",
            "nothing says that gpt2 is an encoder; the container `neuron` serves encoders: "
            "bert, distilbert, roberta, xlm_roberta, and networks with `cached_layers: 0`",
            "Choose another container, or `family: other` for an encoder that is not listed.",
        )
        # So is a network with attention that keeps no cache.
        shape = {"family": "modernbert", "attention_heads": 12, "cached_layers": 0}
        assert findings(rules.model_is_an_encoder, **(neuron() | {"model": shape})) == []
        mamba = {"family": "mamba2", "cached_layers": 0}
        assert findings(rules.model_is_an_encoder, **(neuron() | {"model": mamba})) != []

    @pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "xlm_roberta", "other"])
    def test_these_are_encoders(self, family):
        sections = neuron() | {"model": {"family": family}}
        assert findings(rules.model_is_an_encoder, **sections) == []


class TestPipelines:
    def test_pipeline_is_for_latency(self):
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
        assert only(findings(rule, **neuron(pipeline_cores=4))) == (
            "serving.pipeline_cores",
            "`objective: throughput` is data parallel, a copy of the model on each core; a "
            "copy in a pipeline cannot be data parallel",
            "Remove `pipeline_cores`, or set `objective: latency`.",
        )
        assert findings(rule, **neuron(pipeline_cores=4, **LATENCY)) == []
        assert findings(rule, **neuron()) == []

    def test_they_are_no_longer_than_the_instance(self):
        rule = rules.pipeline_fits_cores
        inf1 = {"endpoint": on("ml.inf1.6xlarge")}
        assert only(findings(rule, **inf1, **neuron(pipeline_cores=17, **LATENCY))) == (
            "serving.pipeline_cores",
            "a pipeline of 17 NeuronCores does not fit ml.inf1.6xlarge, which has 16",
            "Use 16 or fewer, or leave it out: it then follows the number of weights.",
        )
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


def test_workers_fit_cores():
    rule = rules.workers_fit_cores
    assert only(findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron(workers=5))) == (
        "serving.workers",
        "5 workers of 1 NeuronCore take 5 NeuronCores; ml.inf1.xlarge has 4",
        "Use 4 at most, or leave it out: it is then as many as the cores carry.",
    )
    assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron(workers=4)) == []
    assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron()) == []
    inf1 = {"endpoint": on("ml.inf1.6xlarge")}
    three = neuron(workers=3, pipeline_cores=6, **LATENCY)
    assert only(findings(rule, **inf1, **three)) == (
        "serving.workers",
        "3 workers of 6 NeuronCores take 18 NeuronCores; ml.inf1.6xlarge has 16",
        "Use 2 at most, or leave it out: it is then as many as the cores carry.",
    )
    two = neuron(workers=2, pipeline_cores=6, **LATENCY)
    assert findings(rule, **inf1, **two) == []


class TestPools:
    def test_placements_agree(self):
        rule = rules.placements_agree
        mixed = pool("ml.inf1.xlarge", "ml.inf1.2xlarge", "ml.inf1.6xlarge")
        assert only(findings(rule, **mixed, **neuron())) == (
            "endpoint.instances[2]",
            "ml.inf1.xlarge takes 4 workers of 1 NeuronCore, ml.inf1.6xlarge 16 workers of 1 "
            "NeuronCore; one environment is for both: SAGEMAKER_MODEL_SERVER_WORKERS, "
            "SLIPWAY_WORKERS",
            "Choose types with as many NeuronCores, or set `workers` to what all of them carry.",
        )
        assert findings(rule, **mixed, **neuron(workers=4)) == []
        assert findings(rule, **pool("ml.inf1.xlarge", "ml.inf1.2xlarge"), **neuron()) == []
        assert findings(rule, **pool("ml.inf2.xlarge", "ml.trn1.2xlarge"), **neuronx()) == []
        mixed = pool("ml.inf1.6xlarge", "ml.inf1.24xlarge")
        assert only(findings(rule, **mixed, **neuron(**LATENCY))) == (
            "endpoint.instances[1]",
            "ml.inf1.6xlarge takes 1 worker of 16 NeuronCores, ml.inf1.24xlarge 2 workers of "
            "24 NeuronCores; one environment is for both: NEURON_RT_NUM_CORES, "
            "SAGEMAKER_MODEL_SERVER_WORKERS, SLIPWAY_PIPELINE_CORES, SLIPWAY_WORKERS",
            "Choose types with as many NeuronCores, or set `pipeline_cores` and `workers` to "
            "what all of them carry.",
        )
        settled = neuron(pipeline_cores=16, workers=1, **LATENCY)
        assert findings(rule, **mixed, **settled) == []
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
        assert only(findings(rule, **types, **neuronx(batch_size=2, **LATENCY))) == (
            "serving.batch_size",
            "`objective: latency` serves every request by itself on ml.inf2.xlarge; batches "
            "of 2 would make it wait for others",
            "Remove `batch_size`, or set `objective: throughput`.",
        )
        assert findings(rule, **types, **neuronx(batch_size=1, **LATENCY)) == []
        assert findings(rule, **types, **neuronx(batch_size=2)) == []
        pipeline = neuron(batch_size=2, **LATENCY)
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **pipeline) == []

    def test_the_queue_has_room_for_one(self):
        rule = rules.batches_fit
        assert only(findings(rule, **neuron(batch_size=6, max_queue_length=5))) == (
            "serving.max_queue_length",
            "a queue of 5 never holds a batch of 6",
            "Raise `max_queue_length` or lower `batch_size`.",
        )
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
        assert findings(rules.batches_fit, **neuron(sequence_lengths=lengths)) == [
            ("serving.sequence_lengths", message, remedy)
        ]

    @pytest.mark.parametrize("lengths", [None, [128], [8, 32, 128]])
    def test_buckets_that_do(self, lengths):
        rule = rules.batches_fit
        assert findings(rule, **neuron(sequence_lengths=lengths)) == []


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
    for rule in rules_of(rules):
        assert findings(rule, PRODUCTION, endpoint=on(endpoint), **sections, **target) == []
    for say in rules_of(advice):
        assert warnings(say, endpoint=on(endpoint), **sections) == []
