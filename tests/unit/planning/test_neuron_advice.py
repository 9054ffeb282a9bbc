"""Advice about configs on NeuronCores, word for word."""

from slipway.planning.families.custom import advice as custom_advice
from slipway.planning.families.neuron import advice
from tests.unit.planning.neuron_findings import (
    LATENCY,
    MULTI_MODEL_SERVER,
    NEURON,
    OWN,
    TOOLKIT,
    TORCHSERVE,
    TORCHSERVE_X,
    custom,
    neuron,
    neuronx,
    warnings,
)
from tests.unit.planning.rule_findings import on, only

DISTILBERT = {"family": "distilbert", "parameters": 66_000_000}


class TestAdvice:
    def test_idle_cores(self):
        say, big = advice.idle_cores, on("ml.inf1.24xlarge")
        sections = {"model": DISTILBERT, "serving": NEURON | LATENCY}
        assert only(warnings(say, endpoint=big, **sections)) == (
            "neuron-cores-idle",
            "5 workers of 12 NeuronCores leave 4 of the 64 of ml.inf1.24xlarge idle.",
        )
        sixteen = neuron(pipeline_cores=16, **LATENCY)
        assert warnings(say, endpoint=big, **sixteen) == []
        say, endpoint = advice.idle_cores, on("ml.inf2.xlarge")
        assert only(warnings(say, endpoint=endpoint, **neuronx(workers=1))) == (
            "neuron-cores-idle",
            "1 worker of 1 NeuronCore leaves 1 of the 2 of ml.inf2.xlarge idle.",
        )
        assert warnings(say, endpoint=endpoint, **neuronx(workers=2)) == []
        # More than there are is refused.
        assert warnings(say, endpoint=endpoint, **neuronx(workers=3)) == []

    def test_workers_not_busy(self):
        say, endpoint = advice.workers_not_busy, on("ml.inf1.6xlarge")
        assert only(
            warnings(say, endpoint=endpoint, **neuron(expected_concurrency=11, **LATENCY))
        ) == (
            "neuron-pipeline-not-full",
            "With 11 requests in flight the pipelines of ml.inf1.6xlarge have the latency, "
            "but not the throughput: about 12 fill them.",
        )
        full = neuron(expected_concurrency=12, **LATENCY)
        assert warnings(say, endpoint=endpoint, **full) == []
        assert warnings(say, endpoint=endpoint, **neuron(**LATENCY)) == []
        say, endpoint = advice.workers_not_busy, on("ml.inf1.xlarge")
        assert only(
            warnings(say, endpoint=endpoint, **neuron(batch_size=6, expected_concurrency=1))
        ) == (
            "neuron-batches-not-full",
            "With 1 request in flight some cores of ml.inf1.xlarge wait or compute padding: 4 "
            "workers with batches of 6 take 24.",
        )
        for concurrency, expected in ((23, 1), (24, 0)):
            sections = neuron(batch_size=6, expected_concurrency=concurrency)
            assert len(warnings(say, endpoint=endpoint, **sections)) == expected
        # Latency leaves cores waiting on purpose.
        sections = neuronx(expected_concurrency=1, **LATENCY)
        assert warnings(advice.workers_not_busy, endpoint=on("ml.inf2.xlarge"), **sections) == []

    def test_the_variable_of_the_first_runtime(self):
        say, inf1 = custom_advice.group_sizes_have_no_effect, on("ml.inf1.xlarge")
        old = custom(OWN, NEURONCORE_GROUP_SIZES="1,1,1,1")
        assert only(warnings(say, endpoint=inf1, **old)) == (
            "neuroncore-group-sizes",
            "NEURONCORE_GROUP_SIZES has had no effect since Neuron SDK 1.20: use "
            "NEURON_RT_NUM_CORES, the cores of each process.",
        )
        assert warnings(say, endpoint=inf1, **custom(OWN, NEURON_RT_NUM_CORES="1")) == []
        assert warnings(say, endpoint=on("ml.g4dn.xlarge"), **old) == []

    def test_a_tag_can_move_and_a_digest_cannot(self):
        say, repository = custom_advice.tag_can_move, OWN.partition(":")[0]
        for tag in ("latest", "1.4.2"):
            assert only(warnings(say, **custom(f"{repository}:{tag}"))) == (
                "image-tag",
                f"The tag `{tag}` of `image_uri` can move, and then the next instance runs "
                f"another image: write {repository}@DIGEST. `aws ecr describe-images --region "
                "us-east-1 --registry-id 123456789012 --repository-name search --image-ids "
                f"imageTag={tag}` tells the digest.",
            )
        assert warnings(say, **custom(f"{repository}@sha256:{'a' * 64}")) == []

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
        assert only(warnings(say, endpoint=inf2, **batching)) == (
            "torchserve-one-worker",
            "SAGEMAKER_TS_BATCH_SIZE is set, and so the default of SAGEMAKER_TS_MIN_WORKERS "
            "and SAGEMAKER_TS_MAX_WORKERS is 1: set them too, or most of the 12 NeuronCores "
            "of ml.inf2.24xlarge may stay idle.",
        )
        # One thing is wrong, not two.
        assert warnings(custom_advice.workers_follow_processors, endpoint=inf2, **batching) == []
        half = custom(TORCHSERVE_X, SAGEMAKER_TS_MIN_WORKERS="12")
        assert only(warnings(say, endpoint=inf2, **half)) == (
            "torchserve-one-worker",
            "SAGEMAKER_TS_MIN_WORKERS is set, and so the default of SAGEMAKER_TS_MAX_WORKERS "
            "is 1: set it too, or most of the 12 NeuronCores of ml.inf2.24xlarge may stay "
            "idle.",
        )
        both = custom(TORCHSERVE_X, SAGEMAKER_TS_MIN_WORKERS="12", SAGEMAKER_TS_MAX_WORKERS="12")
        assert warnings(say, endpoint=inf2, **both) == []
        assert warnings(say, endpoint=inf2, **custom(OWN, SAGEMAKER_TS_BATCH_SIZE="8")) == []
