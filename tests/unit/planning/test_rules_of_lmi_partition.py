"""LMI weights that a job partitions: each rule, what it says, and what it lets pass."""

from typing import Any

import pytest

from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.rules import partitioning as lmi_partition
from slipway.planning.partial import rules_of
from tests.support.projects import PRODUCTION
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, sections
from tests.unit.planning.rule_findings import findings, only

SPLIT_LATER = "Remove `compile`: the weights are split when they are loaded."


def found(
    rule: Rule,
    base: tuple[str, str] = DEEPSPEED,
    *,
    on: str = "ml.g5.12xlarge",
    instances: tuple[str, ...] = ("ml.g5.12xlarge",),
    family: str = "opt",
    size_gb: float | None = None,
    volume_size_gb: int = 100,
    compiled: bool = True,
    **serving: Any,
) -> list[tuple[str, str, str]]:
    given = sections(base, **{"tensor_parallel_degree": 4} | serving)
    given["endpoint"]["instances"] = list(instances)
    artifacts: dict[str, Any] = {
        "weights": {"source": "s3", "uri": "s3://my-models/any/"},
        "release": None,
        "size_gb": size_gb,
    }
    if compiled:
        artifacts["compile"] = {"instance": on, "volume_size_gb": volume_size_gb}
    return findings(rule, PRODUCTION, **given, model={"family": family}, artifacts=artifacts)


@pytest.mark.parametrize("rule", rules_of(lmi_partition), ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("image", [FT, DEEPSPEED, TRTLLM], ids="-".join)
def test_a_plain_config_breaks_no_rule(rule, image):
    assert found(rule, image, size_gb=13.3) == []


@pytest.mark.parametrize("rule", rules_of(lmi_partition), ids=lambda rule: rule.__name__)
def test_without_compile_nothing_is_asked(rule):
    given: dict[str, Any] = {"script": "handlers/t5", "family": "gpt2", "size_gb": 1000}
    assert found(rule, DEEPSPEED, compiled=False, tensor_parallel_degree=1, **given) == []


def test_images_handler_partitions():
    assert only(found(lmi_partition.images_handler_partitions, FT, script="handlers/t5")) == (
        "artifacts.compile",
        "the image's own handler partitions weights, and `script` replaces that handler",
        f"{SPLIT_LATER} Or remove `script`.",
    )
    assert only(found(lmi_partition.images_handler_partitions, FT, image="built")) == (
        "artifacts.compile",
        "the image's own handler partitions weights, and `image: built` replaces that handler",
        f"{SPLIT_LATER} Or use `image: managed`.",
    )


class TestVersions:
    rule: Rule = staticmethod(lmi_partition.partition_can_be_used)

    def test_partition_can_be_used(self):
        assert only(found(self.rule, ("djl-deepspeed", "0.21.0"))) == (
            "artifacts.compile",
            "DeepSpeed of djl-deepspeed 0.21.0 writes the directory of the job into "
            "ds_inference_config.json, and DeepSpeed looks for the shards there when it serves",
            f"{SPLIT_LATER} Or use version 0.22.1 or a later one.",
        )
        assert only(found(self.rule, NEURONX, instances=("ml.inf2.48xlarge",))) == (
            "artifacts.compile",
            "Transformers-NeuronX of djl-neuronx 0.27.0 needs NeuronCores, and Slipway starts "
            "no training job that has them",
            SPLIT_LATER,
        )
        # What has no command is another rule's.
        assert found(self.rule, VLLM) == []

    def test_nothing_else_is_said_of_it(self):
        for rule in rules_of(lmi_partition):
            if rule is not self.rule:
                given: dict[str, Any] = {"on": "ml.p3.2xlarge", "size_gb": 1000}
                assert found(rule, ("djl-deepspeed", "0.21.0"), family="gpt2", **given) == []


def test_another_engine_starts_other_processes():
    rule = lmi_partition.engine_partitions
    assert only(found(rule, FT, engine="Python", entry_point="djl_python.fastertransformer")) == (
        "artifacts.compile",
        "FasterTransformer of djl-fastertransformer 0.24.0 partitions for the engine "
        "FasterTransformer; the engine is Python",
        "Remove `compile`, or serve with the engine FasterTransformer.",
    )


def test_deepspeed_on_one_gpu_has_nothing_to_split():
    rule = lmi_partition.there_is_something_to_split
    assert only(found(rule, tensor_parallel_degree=1)) == (
        "artifacts.compile",
        "DeepSpeed of djl-deepspeed 0.27.0 splits weights over GPUs, and "
        "`tensor_parallel_degree` is 1",
        "Remove `compile`: there is nothing to split.",
    )
    assert found(rule, tensor_parallel_degree=2) == []
    # These turn a checkpoint into another format besides.
    assert found(rule, FT, tensor_parallel_degree=1) == []
    assert found(rule, TRTLLM, tensor_parallel_degree=1) == []


class TestFamilies:
    rule: Rule = staticmethod(lmi_partition.parts_load_again)

    def test_parts_load_again(self):
        assert only(found(self.rule, family="gpt2")) == (
            "artifacts.compile",
            "DeepSpeed of djl-deepspeed 0.27.0 loads the parts of bloom, gpt_neo, gpt_neox, "
            "gptj, llama, opt; the family is gpt2",
            SPLIT_LATER,
        )
        # What is not known passes.
        assert found(self.rule, family="other") == []
        assert found(self.rule, FT, family="t5") == []

    @pytest.mark.parametrize(("version", "count"), [("0.24.0", 1), ("0.25.0", 0)])
    def test_llama_by_version(self, version, count):
        assert len(found(self.rule, ("djl-deepspeed", version), family="llama")) == count


class TestOptions:
    rule: Rule = staticmethod(lmi_partition.options_go_with_parts)

    def test_quantizing(self):
        assert only(found(self.rule, options={"quantize": "dynamic_int8"})) == (
            "serving.options.quantize",
            "with `compile` the option `quantize` does not go with shards: DeepSpeed quantizes "
            "what it loads from a checkpoint of Hugging Face's form",
            "Remove `quantize`, or `compile`.",
        )
        # An engine is built quantized.
        assert found(self.rule, TRTLLM, options={"quantize": "awq"}) == []

    @pytest.mark.parametrize("key", ["checkpoint", "parallel_loading", "save_mp_checkpoint_path"])
    def test_slipways_own(self, key):
        assert only(found(self.rule, options={key: "any"})) == (
            f"serving.options.{key}",
            f"with `compile` the option `{key}` is written by Slipway, with the address of the "
            "parts",
            f"Remove `{key}`, or `compile`.",
        )

    @pytest.mark.parametrize("value", ["two\nlines", "at an end "])
    def test_a_value_that_the_command_would_read_as_another(self, value):
        rule = lmi_partition.settings_have_a_line_each
        assert only(found(rule, TRTLLM, options={"calib_dataset": value})) == (
            "serving.options.calib_dataset",
            "the command that partitions reads the option `calib_dataset` as another value: it "
            "has a line break, or white space at an end",
            "Write it on one line, without white space around it.",
        )
        # Where it is no setting of the job's.
        assert found(rule, options={"output_formatter": value}) == []


class TestMachines:
    rule: Rule = staticmethod(lmi_partition.partitions_on_the_endpoints_gpus)

    @pytest.mark.parametrize(
        ("on", "has"), [("ml.g5.2xlarge", "has 1"), ("ml.c5.4xlarge", "has none")]
    )
    def test_too_few_gpus(self, on, has):
        assert only(found(self.rule, on=on)) == (
            "artifacts.compile.instance",
            f"one copy takes 4 GPUs; {on} {has}",
            "Partition on the endpoint's type, `ml.g5.12xlarge`.",
        )

    def test_partitions_on_the_endpoints_gpus(self):
        assert only(found(self.rule, on="ml.p3.8xlarge")) == (
            "artifacts.compile.instance",
            "ml.p3.8xlarge has NVIDIA V100 (sm70); the endpoint's ml.g5.12xlarge has NVIDIA "
            "A10G (sm86)",
            "Partition on a type with sm86, for example `ml.g5.12xlarge`.",
        )
        # More of the same GPU will do.
        assert found(self.rule, on="ml.g5.48xlarge") == []

    def test_an_endpoint_of_two_kinds_of_gpu(self):
        types = ("ml.g5.12xlarge", "ml.g5.24xlarge", "ml.g6.12xlarge")
        assert only(found(lmi_partition.types_share_the_parts, instances=types)) == (
            "endpoint.instances[2]",
            "ml.g6.12xlarge has NVIDIA L4 (sm89), and ml.g5.12xlarge has NVIDIA A10G (sm86): "
            "the weights are partitioned once, for one of them",
            "Use types with sm86 only, remove `compile`, or give ml.g6.12xlarge weights of its "
            "own with `endpoint.model_overrides`.",
        )


def test_job_has_the_disk():
    rule = lmi_partition.job_has_the_disk
    given: dict[str, Any] = {
        "on": "ml.p3.8xlarge", "instances": ("ml.p3.8xlarge",), "size_gb": 60,
    }  # fmt: skip
    assert only(found(rule, **given)) == (
        "artifacts.compile.volume_size_gb",
        "weights of 60 GB and as much in parts do not fit on the job's volume of 100 GB",
        "Set `volume_size_gb: 133` or more.",
    )
    assert found(rule, volume_size_gb=133, **given) == []
    assert only(found(rule, on="ml.g4dn.12xlarge", size_gb=700)) == (
        "artifacts.compile.instance",
        "weights of 700 GB and as much in parts do not fit on the local disk of "
        "ml.g4dn.12xlarge, which has 900 GB",
        "Partition on a type with the same GPU and a larger local disk.",
    )
