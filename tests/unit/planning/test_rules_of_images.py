"""Container images and compiled targets: refusals word for word, and configs that pass."""

from typing import Any, get_args

import pytest

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.facts.tensorrt.releases import newest_release_for, tensorrt_releases
from slipway.planning.families import deployment_of
from slipway.planning.families.custom import rules as custom_rules
from slipway.planning.families.neuron import rules as neuron_rules
from slipway.planning.families.tensorrt import rules as tensorrt_rules
from slipway.planning.families.triton import rules as triton_rules
from slipway.planning.rules import hardware, serving
from tests.support.projects import LOCAL, PRODUCTION, model_config
from tests.unit.planning.neuron_findings import NEURON
from tests.unit.planning.rule_findings import findings, on, only, own_rules, refused_fields

V100, T4, A10G = "ml.p3.2xlarge", "ml.g4dn.xlarge", "ml.g5.xlarge"
HUB = {"source": "hub", "repository": "t5-small", "revision": "a" * 40}
CUSTOM = {
    "container": "custom",
    "image_uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2",
}
GOVERNMENT = Environment(name="gov", account="123456789012", region="us-gov-west-1")


def triton(version: str = "25.09", **more: Any) -> dict[str, Any]:
    serving = {"container": "triton", "version": version, "max_input_tokens": 64}
    return {"serving": serving | {"max_new_tokens": 64} | more}


def lmi(framework: str, version: str) -> dict[str, Any]:
    serving = {"container": "lmi", "framework": framework, "version": version, "dtype": "fp16"}
    return {"serving": serving}


def neuron(framework: str) -> dict[str, Any]:
    return {"serving": NEURON | {"framework": framework}}


def weights(instance: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"release": None, "weights": HUB}
    if instance is not None:
        found["compile"] = {"instance": instance}
    return {"artifacts": found}


class TestTensorRT:
    def test_the_field_takes_the_releases_there_are(self):
        annotation = TensorRTServing.model_fields["tensorrt_version"].annotation
        literals = [get_args(part) for part in get_args(annotation)]
        assert tuple(tensorrt_releases()) in literals

    def test_volta_needs_the_older_release(self):
        rule = tensorrt_rules.release_runs_on_gpu
        assert only(findings(rule, endpoint=on(V100), serving={"tensorrt_version": "10.13"})) == (
            "serving.tensorrt_version",
            "TensorRT 10.13 needs sm75 or newer; ml.p3.2xlarge has NVIDIA V100 (sm70)",
            "Use 10.4, or leave it out. Or choose an instance type with a newer GPU.",
        )
        assert findings(rule, endpoint=on(V100), serving={"tensorrt_version": "10.4"}) == []
        assert findings(rule, endpoint=on(T4), serving={"tensorrt_version": "10.13"}) == []
        assert findings(rule, endpoint=on(V100)) == []

    def test_some_gpus_are_too_old_for_any(self):
        rule = tensorrt_rules.gpu_is_not_too_old
        assert only(findings(rule, endpoint=on("ml.p2.xlarge"))) == (
            "endpoint.instances[0]",
            "no TensorRT version of Slipway's images runs on ml.p2.xlarge: NVIDIA K80 is sm37",
            "Choose an instance type with a newer GPU, for example `ml.g4dn.xlarge`.",
        )
        assert findings(rule, endpoint=on(V100)) == []

    @pytest.mark.parametrize(
        ("capabilities", "version"),
        [
            ({"sm70"}, "10.4"),
            ({"sm75"}, "10.13"),
            ({"sm86", "sm90"}, "10.13"),
            (set(), "10.13"),
            # No release runs on it, which a rule tells.
            ({"sm37"}, "10.13"),
        ],
    )
    def test_the_newest_that_fits_is_taken(self, capabilities, version):
        assert newest_release_for(frozenset(capabilities)).version == version


class TestTriton:
    def test_a_release_has_an_image(self):
        rule = triton_rules.release_exists
        assert only(findings(rule, **triton("25.08"))) == (
            "serving.version",
            "there is no Triton image of release 25.08",
            "Did you mean `25.09`? There are 23.12, 24.01, 24.03, 24.05, 24.09, 25.04, 25.09, "
            "26.05.",
        )
        assert findings(rule, **triton("25.09")) == []

    def test_its_tensorrt_needs_a_gpu(self):
        rule = triton_rules.needs_nvidia_gpu
        assert only(findings(rule, **triton(), endpoint=on("ml.c5.xlarge"))) == (
            "endpoint.instances[0]",
            "ml.c5.xlarge has no GPU; the backend `tensorrt` of Triton does not run on it",
            "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` or "
            "`ml.g5.xlarge`.",
        )
        on_cpu = triton(backend="onnxruntime")
        assert findings(rule, **on_cpu, endpoint=on("ml.c5.xlarge")) == []
        assert len(findings(rule, **on_cpu, endpoint=on("ml.inf2.xlarge"))) == 1
        assert findings(rule, **triton(), endpoint=on(T4)) == []

    def test_newer_releases_leave_old_gpus_behind(self):
        rule = hardware.image_runs_on_gpu
        assert only(findings(rule, **triton("25.09"), endpoint=on(V100))) == (
            "endpoint.instances[0]",
            "sagemaker-tritonserver 25.09 needs sm75 or newer; ml.p3.2xlarge has NVIDIA V100 "
            "(sm70)",
            "Use version 24.09, or an instance type with a newer GPU.",
        )
        assert findings(rule, **triton("24.09"), endpoint=on(V100)) == []
        assert findings(rule, **triton("25.09"), endpoint=on(T4)) == []

    @pytest.mark.parametrize("version", ["0.36.0", "0.38.0"])
    def test_cuda_13_has_no_code_for_volta(self, version):
        rule = hardware.image_runs_on_gpu
        assert only(findings(rule, **lmi("djl-lmi", version), endpoint=on(V100))) == (
            "endpoint.instances[0]",
            f"djl-lmi {version} needs sm75 or newer; ml.p3.2xlarge has NVIDIA V100 (sm70)",
            "Use version 0.35.0, or an instance type with a newer GPU.",
        )
        assert findings(rule, **lmi("djl-lmi", version), endpoint=on(T4)) == []
        assert findings(rule, **lmi("djl-lmi", "0.35.0"), endpoint=on(V100)) == []

    def test_its_models_come_from_somewhere(self):
        rule = triton_rules.has_a_repository
        gpt2, t5 = ({"model": {"family": family}} for family in ("gpt2", "t5"))
        assert only(findings(rule, **triton(), **gpt2)) == (
            "serving.container",
            "Slipway makes no Triton model repository for the family `gpt2`",
            "Add `repository` with the directory of your own.",
        )
        assert findings(rule, **triton(repository="triton/gpt2"), **gpt2) == []
        assert findings(rule, **triton(), **t5) == []

    def test_a_setting_of_slipways_model_beside_an_own_repository(self):
        rule = triton_rules.repository_has_its_own_settings
        own = {"container": "triton", "version": "25.09", "repository": "triton/own"}
        assert findings(rule, serving=own | {"shared_memory_bytes": 1 << 20}) == []
        given = {"max_batch_size": 8, "max_queue_length": 256, "max_new_tokens": 32}
        found = findings(rule, serving=own | given)
        assert [each[0] for each in found] == [f"serving.{name}" for name in given]
        assert found[0][1] == (
            "`max_batch_size` has no effect on your own repository, triton/own: `max_batch_size` "
            "of config.pbtxt decides it"
        )
        assert findings(rule, **triton()) == []

    def test_slipways_model_needs_both_lengths(self):
        rule = triton_rules.own_model_has_lengths
        serving = {"container": "triton", "version": "25.09", "max_new_tokens": 8}
        assert only(findings(rule, serving=serving)) == (
            "serving",
            "`max_input_tokens` is missing",
            "Add it, for example `max_input_tokens: 64`. Longest text that is accepted, in "
            "tokens. Slipway's model needs it.",
        )
        assert findings(rule, serving=serving | {"repository": "triton/own"}) == []


class TestRegions:
    def test_image_is_in_region(self):
        rule = hardware.image_is_in_region
        assert only(findings(rule, GOVERNMENT, **lmi("djl-fastertransformer", "0.21.0"))) == (
            "serving.container",
            "AWS does not publish djl-fastertransformer 0.21.0 in us-gov-west-1",
            "Choose another region, or another image.",
        )
        assert findings(rule, PRODUCTION, **lmi("djl-fastertransformer", "0.21.0")) == []
        # Nothing is said of a version that there is not: another rule does.
        assert findings(rule, PRODUCTION, **lmi("djl-fastertransformer", "9.9.9")) == []
        china = Environment(name="cn", account="123456789012", region="cn-north-1")
        assert only(findings(hardware.image_is_in_region, china, **triton("26.05"))) == (
            "serving.version",
            "AWS does not publish sagemaker-tritonserver 26.05 in cn-north-1",
            "Use a version that is there: 23.12, 24.01, 24.03, 24.05, 24.09, 25.04.",
        )

    def test_a_registry_has_its_regions_domain(self):
        rule = custom_rules.image_has_its_regions_domain
        registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com.cn"
        custom = {"container": "custom", "image_uri": f"{registry}/search:1"}
        assert only(findings(rule, serving=custom)) == (
            "serving.image_uri",
            f"there is no registry {registry}: that region's domain is amazonaws.com",
            "Write it with amazonaws.com.",
        )
        for region, domain, count in (
            ("cn-north-1", "amazonaws.com.cn", 0),
            ("cn-north-1", "amazonaws.com", 1),
            ("us-east-1", "amazonaws.com", 0),
        ):
            uri = f"123456789012.dkr.ecr.{region}.{domain}/search:1"
            assert len(findings(rule, serving=custom | {"image_uri": uri})) == count

    def test_a_custom_image_lies_in_the_endpoints_region(self):
        rule = custom_rules.image_is_in_region
        assert findings(rule, serving=CUSTOM) == []
        assert only(findings(rule, PRODUCTION, serving=CUSTOM)) == (
            "serving.image_uri",
            "the image lies in us-east-1 and the endpoint in eu-west-1; SageMaker pulls no "
            "image across regions",
            "Copy the image to eu-west-1, for example with a replication rule of ECR, and name "
            "that copy, in `environments.production.serving.image_uri` where environments lie "
            "in several regions.",
        )

    def test_a_private_registry_is_reached_through_a_vpc(self):
        rule = custom_rules.registry_is_reached
        function = "arn:aws:lambda:us-east-1:123456789012:function:credentials"
        ecr = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/search:1"
        custom = {"container": "custom", "image_uri": "registry.example.com:5000/search:1"}
        vpc = {"vpc": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}}
        private = custom | {"private_registry": {}}
        assert findings(rule, PRODUCTION, serving=private, endpoint=vpc) == []
        assert findings(rule, PRODUCTION, serving=custom | {"image_uri": ecr}) == []
        assert only(findings(rule, PRODUCTION, serving=custom)) == (
            "serving.image_uri",
            "registry.example.com:5000 is no registry of ECR: SageMaker reaches it through a "
            "VPC alone",
            "Copy the image to ECR, or add `private_registry: {}` and a network.",
        )
        with_function = custom | {"private_registry": {"credentials_function_arn": function}}
        assert findings(rule, PRODUCTION, serving=with_function) == [
            (
                "serving.private_registry",
                "SageMaker reaches registry.example.com:5000 through a VPC, and the endpoint has "
                "none",
                "Add `endpoint.vpc`, or a `network` to the environment.",
            ),
            (
                "serving.private_registry.credentials_function_arn",
                "the function is in us-east-1, and the endpoint in eu-west-1",
                "Name a function of eu-west-1.",
            ),
        ]
        assert only(findings(rule, PRODUCTION, serving=private | {"image_uri": ecr})) == (
            "serving.private_registry",
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com is ECR, from which SageMaker pulls "
            "by itself",
            "Remove `private_registry`.",
        )
        # No rule takes another registry for ECR's.
        deployment = deployment_of(model_config(serving=custom), PRODUCTION)
        assert [each.code for each in own_rules(deployment)] == [Code.PRIVATE_REGISTRY]


def test_cuda_13_needs_the_newest_host():
    old = {"inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1"}
    rule = hardware.ami_fits_cuda
    for sections in (triton("25.09"), {}, lmi("djl-lmi", "0.36.0")):
        found = findings(rule, endpoint=on(A10G) | old, **sections)
        assert [message for _, message, _ in found] == [
            "the image has CUDA 13.0, whose driver al2-ami-sagemaker-inference-gpu-3-1 does "
            "not have"
        ]
    for sections in (triton("25.04"), {"serving": {"tensorrt_version": "10.4"}}):
        assert findings(rule, endpoint=on(A10G) | old, **sections) == []


class TestCompiling:
    def test_compiled_models_are_compiled(self):
        rule = serving.checkpoint_is_compiled
        assert refused_fields(rule, **weights()) == ["artifacts.weights"]
        assert len(findings(rule, **weights(), **triton())) == 1
        assert len(findings(rule, **weights(), **neuron("neuronx"))) == 1
        assert len(findings(rule, **weights(), **triton(backend="onnxruntime"))) == 1
        assert findings(rule, **weights(), **triton(repository="triton/own")) == []
        assert findings(rule, **weights(), **lmi("djl-lmi", "0.36.0")) == []

    def test_a_custom_image_is_not_ours_to_compile_for(self):
        rule = custom_rules.image_compiles_itself
        assert only(findings(rule, serving=CUSTOM, **weights(T4))) == (
            "artifacts.compile",
            "Slipway cannot compile for a container of your own",
            "Remove `compile`: the weights are published as they are.",
        )
        assert findings(rule, serving=CUSTOM, **weights()) == []

    def test_an_engine_is_built_on_its_gpu(self):
        rule = serving.compiles_on_the_endpoints_gpu
        assert only(findings(rule, endpoint=on(A10G), **weights(T4))) == (
            "artifacts.compile.instance",
            "ml.g4dn.xlarge has NVIDIA T4 (sm75); the endpoint's ml.g5.xlarge has NVIDIA A10G "
            "(sm86)",
            "Compile on a type with sm86, for example `ml.g5.xlarge`.",
        )
        found = findings(rule, endpoint=on(A10G), **weights("ml.c5.xlarge"), **triton())
        assert [message for _, message, _ in found] == [
            "ml.c5.xlarge has no GPU; the endpoint's ml.g5.xlarge has NVIDIA A10G (sm86)"
        ]
        assert findings(rule, endpoint=on(A10G), **weights("ml.g5.2xlarge")) == []
        # Neuron's compiler is another matter.
        inf2 = on("ml.inf2.xlarge")
        assert findings(rule, endpoint=inf2, **weights("ml.c5.4xlarge"), **neuron("neuronx")) == []

    def test_neuron_compiles_without_a_device(self):
        rule = neuron_rules.compiles_on_cpu
        inf1 = on("ml.inf1.xlarge")
        found = findings(rule, endpoint=inf1, **weights("ml.inf1.xlarge"), **neuron("neuron"))
        assert found == [
            (
                "artifacts.compile.instance",
                "ml.inf1.xlarge has AWS Inferentia; Neuron compiles on a processor, and no "
                "training job runs on inf1 or inf2",
                "Use a CPU type with 32 GiB of memory or more, for example `ml.c5.4xlarge`.",
            )
        ]
        assert findings(rule, endpoint=inf1, **weights("ml.c5.4xlarge"), **neuron("neuron")) == []

    def test_a_pool_runs_one_engine(self):
        rule = serving.fallback_types_share_one_target
        mixed = {"instances": [T4, "ml.g4dn.2xlarge", A10G]}
        expected = [
            (
                "endpoint.instances[2]",
                "ml.g5.xlarge has NVIDIA A10G (sm86), and ml.g4dn.xlarge has NVIDIA T4 (sm75): one "
                "engine does not run on both",
                "Use types with sm75 only, or give ml.g5.xlarge an engine of its own with "
                "`endpoint.model_overrides`.",
            )
        ]
        assert findings(rule, LOCAL, endpoint=mixed) == expected
        assert findings(rule, PRODUCTION, endpoint=mixed, **triton()) == expected
        assert findings(rule, endpoint=mixed, **triton(backend="onnxruntime")) == []
        assert findings(rule, endpoint=mixed, **lmi("djl-lmi", "0.36.0")) == []

    def test_a_triton_engine_fits_its_gpu(self):
        found = findings(serving.engine_fits_gpu, PRODUCTION, endpoint=on(A10G), **triton())
        assert [message for _, message, _ in found] == [
            "the engine was built for sm75, but ml.g5.xlarge has NVIDIA A10G (sm86)"
        ]
