"""Each rule: what it refuses, word for word, and what it lets pass."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

from slipway.config.environments import Environment
from slipway.facts.instances import Accelerator, instance_types
from slipway.planning import rules
from slipway.planning.families import FAMILIES, deployment_of
from slipway.planning.families.lmi import rules as lmi_rules
from slipway.planning.families.tensorrt import rules as tensorrt
from slipway.planning.partial import rules_of
from slipway.planning.rules import RULES, capacity, hardware, serving, surroundings
from tests.support.projects import LOCAL, PRODUCTION, model_config
from tests.unit.planning.rule_findings import findings, on, only, refused_fields, scaling


@pytest.mark.parametrize(
    ("name", "what_it_has", "instead"),
    [
        (
            "ml.c5.xlarge",
            "no accelerator",
            " Or let GPT-2 run on processors with `dtype: int8` or `dtype: fp32`.",
        ),
        ("ml.inf2.24xlarge", "6 x AWS Inferentia2", ""),
        ("ml.dl1.24xlarge", "8 x Habana Gaudi HL-205", ""),
    ],
)
@pytest.mark.parametrize("environment", [LOCAL, PRODUCTION], ids=lambda item: item.name)
def test_tensorrt_needs_an_nvidia_gpu(name, what_it_has, instead, environment):
    assert only(findings(tensorrt.needs_nvidia_gpu, environment, endpoint=on(name))) == (
        "endpoint.instances[0]",
        f"{name} has {what_it_has}; the container `tensorrt` needs an NVIDIA GPU",
        "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` (NVIDIA T4, "
        f"sm75) or `ml.g5.xlarge` (NVIDIA A10G, sm86).{instead}",
    )
    # One thing is wrong, not two.
    assert findings(serving.engine_fits_gpu, environment, endpoint=on(name)) == []


GENERATION = {"container": "tensorrt", "max_input_tokens": 8, "max_new_tokens": 8,
              "default_new_tokens": 8}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "fp32"])
def test_gpt2_runs_on_processors_in_the_precision_that_is_asked(dtype):
    config = model_config(serving=GENERATION | {"dtype": dtype}, endpoint=on("ml.c7i.2xlarge"))
    deployment = deployment_of(config, PRODUCTION)
    for rule in (tensorrt.needs_nvidia_gpu, tensorrt.int8_runs_on_processors):
        assert list(rule(deployment)) == []
    assert (deployment.compile_target, deployment.settings_in_artifact["dtype"]) == ("cpu", dtype)


ENCODER = {"container": "tensorrt", "task": "embeddings", "sequence_length": 8}


@pytest.mark.parametrize(("family", "serving"), [("gpt2", GENERATION), ("bert", ENCODER)])
def test_int8_is_refused_by_name_on_a_gpu(family, serving):
    changes = {"model": {"family": family}, "serving": serving | {"dtype": "int8"}}
    rule = tensorrt.int8_runs_on_processors
    assert only(findings(rule, PRODUCTION, **changes, endpoint=on("ml.g4dn.xlarge"))) == (
        "serving.dtype",
        "`dtype: int8` is for processors, and ml.g4dn.xlarge has NVIDIA T4 (sm75)",
        "Write `dtype: fp16`, or choose types without an accelerator, for example "
        "`ml.c7i.2xlarge`.",
    )


@pytest.mark.parametrize(("dtype", "told"), [("int8", "int8"), ("fp32", "fp32"), ("fp16", "fp32")])
def test_an_encoder_runs_on_processors_in_int8_or_fp32(dtype, told):
    changes = {"model": {"family": "bert"}, "serving": ENCODER | {"dtype": dtype}}
    deployment = deployment_of(model_config(**changes, endpoint=on("ml.c7i.2xlarge")), PRODUCTION)
    assert list(tensorrt.int8_runs_on_processors(deployment)) == []
    assert (deployment.compile_target, deployment.settings_in_artifact["dtype"]) == ("cpu", told)


@pytest.mark.parametrize("family", ["t5", "llama"])
def test_tensorrt_serves_no_other_family(family):
    assert only(findings(tensorrt.model_can_be_served, model={"family": family})) == (
        "model.family",
        "the container `tensorrt` serves the family gpt2 and encoders (bert, distilbert, "
        f"roberta, xlm_roberta), and this is {family}",
        "Use `container: lmi`, or `container: custom` with an image of your own.",
    )


def test_tensorrt_serves_gpt2_and_encoders_and_leaves_the_unknown_alone():
    for family in ("gpt2", "roberta", "other"):
        assert findings(tensorrt.model_can_be_served, model={"family": family}) == []


def test_tensorrt_takes_any_nvidia_gpu_and_what_is_not_known():
    rule = tensorrt.needs_nvidia_gpu
    for name in ("ml.g4dn.xlarge", "ml.p5.48xlarge", "ml.g7e.2xlarge"):
        assert findings(rule, PRODUCTION, endpoint=on(name)) == []
    plain = instance_types()["ml.c5.xlarge"]
    unknown = dataclasses.replace(plain, accelerator_known=False)
    assert findings(rule, PRODUCTION, unknown) == []
    assert findings(serving.engine_fits_gpu, PRODUCTION, unknown) == []


def test_the_remedys_examples_are_as_it_says():
    for name, product, capability in [
        ("ml.g4dn.xlarge", "NVIDIA T4", "sm75"),
        ("ml.g5.xlarge", "NVIDIA A10G", "sm86"),
    ]:
        gpu = instance_types()[name].accelerator
        assert gpu is not None
        assert (gpu.product, gpu.compute_capability) == (product, capability)


def test_a_volume_size_needs_an_instance_on_ebs():
    assert only(findings(hardware.volume_needs_ebs, endpoint={"volume_size_gb": 30})) == (
        "endpoint.volume_size_gb",
        "ml.g4dn.xlarge stores on its local NVMe disk of 125 GB; SageMaker refuses a volume "
        "size for it",
        "Remove `volume_size_gb`.",
    )
    assert findings(hardware.volume_needs_ebs) == []
    on_ebs = {"instances": ["ml.p3.2xlarge"], "volume_size_gb": 30}
    assert findings(hardware.volume_needs_ebs, endpoint=on_ebs) == []
    unknown = dataclasses.replace(instance_types()["ml.g4dn.xlarge"], local_nvme_gb=None)
    assert (
        findings(hardware.volume_needs_ebs, LOCAL, unknown, endpoint={"volume_size_gb": 30}) == []
    )


def test_an_engine_needs_the_gpu_it_was_built_for():
    g5 = {"instances": ["ml.g5.xlarge"]}
    assert refused_fields(serving.engine_fits_gpu, PRODUCTION, endpoint=g5) == [
        "artifacts.release.target"
    ]
    assert findings(serving.engine_fits_gpu, PRODUCTION) == []
    # A sample runs on the CPU, wherever.
    assert findings(serving.engine_fits_gpu, LOCAL, endpoint=g5) == []
    # That there is none is the next rule's to say.
    assert findings(serving.engine_fits_gpu, PRODUCTION, artifacts={"release": None}) == []
    # Of a GPU whose capability no source gives nothing is said.
    unknown = dataclasses.replace(
        instance_types()["ml.g5.xlarge"], accelerator=Accelerator("gpu", "NVIDIA Z1", 1)
    )
    assert findings(serving.engine_fits_gpu, PRODUCTION, unknown) == []


def test_a_model_comes_from_somewhere():
    nothing = {"sample": None, "release": None}
    assert only(findings(serving.artifact_exists, PRODUCTION, artifacts=nothing)) == (
        "artifacts",
        "there is no model: neither a sample, nor a release, nor weights",
        "Add `artifacts.sample` with the path of a small model for the embedded AWS, and "
        "`artifacts.weights` or `artifacts.release` for the real one.",
    )
    # Whether this environment deploys what there is, is a question for the deploy.
    for one in ({"sample": None}, {"release": None}):
        assert findings(serving.artifact_exists, PRODUCTION, artifacts=one) == []


def test_scaling_bounds():
    assert only(findings(capacity.scaling_bounds, autoscaling=scaling(3, 2))) == (
        "autoscaling.min_instance_count",
        "the minimum, 3, is above the maximum, 2",
        "Raise `max_instance_count` or lower `min_instance_count`.",
    )
    assert findings(capacity.scaling_bounds, autoscaling=scaling(2, 2)) == []
    sections = {"endpoint": {"instance_count": 5}, "autoscaling": scaling(2, 4)}
    assert only(findings(capacity.scaling_bounds, **sections)) == (
        "endpoint.instance_count",
        "5 instances at creation are more than the autoscaling maximum of 4",
        "Remove the count: autoscaling starts the minimum.",
    )
    # A fixed count is any.
    assert findings(capacity.scaling_bounds, endpoint={"instance_count": 1000}) == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_first_count_may_be_below_the_minimum(count):
    sections = {"endpoint": {"instance_count": count}, "autoscaling": scaling(2, 4)}
    assert findings(capacity.scaling_bounds, **sections) == []


def test_the_default_of_new_tokens_is_within_the_limit():
    assert only(findings(tensorrt.token_budget, serving={"default_new_tokens": 43})) == (
        "serving.default_new_tokens",
        "the default of 43 new tokens is above the limit of 42",
        "Lower `default_new_tokens` or raise `max_new_tokens`.",
    )
    assert findings(tensorrt.token_budget, serving={"default_new_tokens": 42}) == []


def test_a_latency_alarm_lies_below_the_request_timeout():
    limit = {"request_timeout_seconds": 50}
    assert only(
        findings(
            serving.latency_below_timeout,
            alarms={"model_latency_p99_milliseconds": 50_000},
            serving=limit,
        )
    ) == (
        "alarms.model_latency_p99_milliseconds",
        "50000 ms is never reached: requests end after 50 s",
        "Set the latency objective below `serving.request_timeout_seconds`.",
    )
    below = {"model_latency_p99_milliseconds": 49_999}
    assert findings(serving.latency_below_timeout, alarms=below, serving=limit) == []


def test_the_names_of_project_model_and_environment_make_one_that_sagemaker_takes():
    longest = Environment(
        name="e" * 20, project="p" * 9, account="123456789012", region="us-east-1"
    )
    assert findings(surroundings.endpoint_name_fits, longest, name="n" * 31) == []
    assert only(findings(surroundings.endpoint_name_fits, longest, name="n" * 33)) == (
        "name",
        f"the endpoint {'p' * 9}--{'n' * 33}-{'e' * 20} would have 65 characters, and "
        "SageMaker allows 63",
        "Shorten the model's name, or `project` or the environment's name in "
        "environments.yaml, by 2.",
    )
    without = longest.model_copy(update={"project": ""})
    assert findings(surroundings.endpoint_name_fits, without, name="n" * 40) == []


@pytest.mark.parametrize(
    ("package", "applied"), [(rules, RULES), (lmi_rules, FAMILIES["lmi"].rules)]
)
def test_the_rules_of_every_module_are_applied(package, applied):
    # An adapter has rules of its own, and `scaling` has parts of rules.
    left_out = {"adapters", "scaling"}
    names = {each.name for each in pkgutil.iter_modules(package.__path__)} - left_out
    for name in names:
        found = rules_of(importlib.import_module(f"{package.__name__}.{name}"))
        assert found
        assert set(found) <= set(applied)
        assert all(len(inspect.signature(rule).parameters) == 1 for rule in found)
