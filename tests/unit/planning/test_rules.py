"""Rules, beside what `reports` say of them: each is applied, and none guesses what is not known."""

import importlib
import inspect
import pkgutil
from dataclasses import replace

import pytest

from slipway.config.environments import Environment
from slipway.facts.instances import Accelerator, InstanceFacts, instance_types
from slipway.planning import rules
from slipway.planning.families import FAMILIES
from slipway.planning.families.custom import rules as custom_rules
from slipway.planning.families.lmi import rules as lmi_rules
from slipway.planning.families.lmi.rules import accelerators, options
from slipway.planning.families.neuron import rules as neuron_rules
from slipway.planning.families.tensorrt import rules as tensorrt_rules
from slipway.planning.partial import rules_of
from slipway.planning.rules import RULES, hardware, serving, surroundings
from tests.support.projects import LOCAL, PRODUCTION
from tests.unit.planning.models import NEURON, custom, lmi, reported


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


def instance(name: str, **unknown) -> InstanceFacts:
    return replace(instance_types()[name], **unknown)


WITHOUT_FACTS = instance("ml.c5.xlarge", accelerator_known=False)
NEW_GPU = instance("ml.g5.xlarge", accelerator=Accelerator("gpu", "NVIDIA Z1", 1))
AWS_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference-neuron:1.13.1"


@pytest.mark.parametrize(
    ("rule", "instance", "serving"),
    [
        (tensorrt_rules.needs_nvidia_gpu, WITHOUT_FACTS, {}),
        (serving.engine_fits_gpu, WITHOUT_FACTS, {}),
        (serving.engine_fits_gpu, NEW_GPU, {}),
        (hardware.volume_needs_ebs, instance("ml.g4dn.xlarge", local_nvme_gb=None), {}),
        (accelerators.image_has_its_accelerator, WITHOUT_FACTS, lmi("djl-lmi", dtype="fp16")),
        (
            accelerators.copy_fits_instance,
            WITHOUT_FACTS,
            lmi("djl-lmi", dtype="fp16", tensor_parallel_degree=8),
        ),
        (custom_rules.aws_image_fits_hardware, WITHOUT_FACTS, custom(image_uri=AWS_IMAGE)),
    ],
)
def test_of_what_no_source_says_nothing_is_said(rule, instance, serving):
    endpoint = {"volume_size_gb": 30}
    assert reported(rule, PRODUCTION, instance, serving=serving, endpoint=endpoint) == []


@pytest.mark.parametrize("known", [False, True])
def test_cores_that_nobody_counted_carry_no_workers(known):
    inf1 = instance_types()["ml.inf1.xlarge"]
    uncounted = replace(inf1.accelerator, neuron_cores_per_device=None) if known else None
    unknown = replace(inf1, accelerator=uncounted, accelerator_known=known)
    assert reported(neuron_rules.neuron_needs_device, LOCAL, unknown, serving=NEURON) == [
        "endpoint.instances[0]: the number of NeuronCores of ml.inf1.xlarge is not known, and the "
        "number of workers follows from it [SW375]\n"
        "    Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`."
    ]


def test_the_remedies_examples_are_as_they_say():
    gpus = [instance_types()[f"ml.{name}.xlarge"].accelerator for name in ("g4dn", "g5")]
    assert [(gpu.product, gpu.compute_capability) for gpu in gpus] == [
        ("NVIDIA T4", "sm75"),
        ("NVIDIA A10G", "sm86"),
    ]
    assert instance_types()["ml.g4dn.8xlarge"].local_nvme_gb == 900


def test_the_names_of_project_model_and_environment_make_one_that_sagemaker_takes():
    rule = surroundings.endpoint_name_fits
    longest = Environment(
        name="e" * 20, project="p" * 9, account="123456789012", region="us-east-1"
    )
    assert reported(rule, longest, name="n" * 31) == []
    assert reported(rule, longest, name="n" * 33) == [
        f"name: the endpoint {'p' * 9}--{'n' * 33}-{'e' * 20} would have 65 characters, and "
        "SageMaker allows 63 [SW215]\n"
        "    Shorten the model's name, or `project` or the environment's name in "
        "environments.yaml, by 2."
    ]
    without = longest.model_copy(update={"project": ""})
    assert reported(rule, without, name="n" * 40) == []


def test_json_that_is_nested_too_deeply_is_refused():
    estimate = {"context_length_estimate": "[" * 100_000}
    serving = lmi("djl-neuronx", version="0.24.0", dtype="fp16", options=estimate)
    (message,) = reported(options.option_values_fit, serving=serving)
    assert "`context_length_estimate` is JSON, not " in message
