"""Inferentia and Trainium, and what is compiled for them: refusals word for word, and passes."""

import dataclasses

import pytest

from slipway.facts.instances import instance_types
from slipway.planning.families.custom import advice as custom_advice
from slipway.planning.families.custom import rules as custom_rules
from slipway.planning.families.neuron import rules
from slipway.planning.partial import rules_of
from tests.support.projects import LOCAL, PRODUCTION
from tests.unit.planning.neuron_findings import (
    OWN,
    SDK_2_29,
    SDK_2_30,
    TOOLKIT,
    TORCHSERVE,
    TORCHSERVE_X,
    custom,
    neuron,
    neuronx,
    pool,
    release,
    warnings,
)
from tests.unit.planning.rule_findings import findings, on, only


class TestHardware:
    @pytest.mark.parametrize(
        ("name", "has"),
        [("ml.c5.xlarge", "no accelerator"), ("ml.g4dn.12xlarge", "4 x NVIDIA T4")],
    )
    def test_the_container_needs_a_neuron_device(self, name, has):
        assert only(findings(rules.neuron_needs_device, endpoint=on(name), **neuron())) == (
            "endpoint.instances[0]",
            f"{name} has {has}; the container `neuron` needs AWS Inferentia or Trainium",
            "Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`.",
        )
        # One thing is wrong, not two.
        for rule in set(rules_of(rules)) - {rules.neuron_needs_device}:
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
        assert only(findings(rules.neuron_needs_device, LOCAL, unknown, **neuron())) == (
            "endpoint.instances[0]",
            "the number of NeuronCores of ml.inf1.xlarge is not known, and the number of "
            "workers follows from it",
            "Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`.",
        )

    def test_each_generation_has_its_images(self):
        rule = rules.image_fits_generation
        assert only(findings(rule, endpoint=on("ml.inf2.24xlarge"), **neuron())) == (
            "endpoint.instances[0]",
            "`framework: neuron` is for inf1; ml.inf2.24xlarge has 6 x AWS Inferentia2",
            "Set `framework: neuronx`, or choose an inf1 type, for example `ml.inf1.xlarge`.",
        )
        mixed = pool("ml.inf2.xlarge", "ml.inf1.2xlarge")
        assert only(findings(rule, **mixed, **neuronx())) == (
            "endpoint.instances[1]",
            "`framework: neuronx` is for inf2 and Trainium; ml.inf1.2xlarge has 1 x AWS Inferentia",
            "Set `framework: neuron`, or choose an inf2 or trn1 type, for example "
            "`ml.inf2.xlarge`.",
        )
        for name in ("ml.inf2.xlarge", "ml.trn1.2xlarge", "ml.trn1n.32xlarge", "ml.trn2.48xlarge"):
            assert findings(rule, endpoint=on(name), **neuronx()) == []
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **neuron()) == []

    def test_a_runtime_that_the_hosts_driver_is_too_old_for_is_refused(self):
        rule, inf2 = custom_rules.driver_runs_the_sdk, on("ml.inf2.xlarge")
        assert only(findings(rule, endpoint=inf2, **custom(SDK_2_30))) == (
            "serving.image_uri",
            "AWS's image has Neuron SDK 2.30.0, whose runtime 2.32 needs Neuron driver 2.27; "
            "the newest host image, al2-ami-sagemaker-inference-neuron-2, has 2.19",
            "Choose an image of an older SDK, 2.29.1 for example.",
        )
        assert findings(rule, endpoint=inf2, **custom(SDK_2_29)) == []
        assert findings(rule, endpoint=inf2, **custom(OWN)) == []
        # Of this one AWS says neither.
        assert findings(rule, endpoint=inf2, **custom(TORCHSERVE_X)) == []
        say = custom_advice.driver_may_be_too_old
        assert only(warnings(say, endpoint=inf2, **custom(TORCHSERVE_X))) == (
            "neuron-driver",
            "The image's Neuron SDK 2.31.1 may not start on "
            "al2-ami-sagemaker-inference-neuron-2, whose Neuron driver is 2.19: AWS's release "
            "notes announced a fix for the runtime before it, which needs driver 2.27, and do "
            "not say that this one has it. SDK 2.29.1 is the newest without that doubt.",
        )
        for image in (SDK_2_29, SDK_2_30, OWN, TOOLKIT):
            assert warnings(say, endpoint=inf2, **custom(image)) == []

    def test_awss_own_images_are_held_to_it_too(self):
        rule = custom_rules.aws_image_fits_hardware
        assert only(findings(rule, endpoint=on("ml.inf2.xlarge"), **custom(TORCHSERVE))) == (
            "endpoint.instances[0]",
            "AWS's image pytorch-inference-neuron is for inf1; ml.inf2.xlarge has 1 x AWS "
            "Inferentia2",
            "Choose an inf1 type, for example `ml.inf1.xlarge`, or another image.",
        )
        assert only(findings(rule, endpoint=on("ml.g5.xlarge"), **custom(TORCHSERVE_X))) == (
            "endpoint.instances[0]",
            "AWS's image pytorch-inference-neuronx is for inf2 and Trainium; ml.g5.xlarge has "
            "1 x NVIDIA A10G",
            "Choose an inf2 or trn1 type, for example `ml.inf2.xlarge`, or another image.",
        )
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), **custom(TORCHSERVE)) == []
        assert findings(rule, endpoint=on("ml.trn2.48xlarge"), **custom(TORCHSERVE_X)) == []
        assert findings(rule, endpoint=on("ml.inf2.xlarge"), **custom(OWN)) == []
        plain = instance_types()["ml.c5.xlarge"]
        unknown = dataclasses.replace(plain, accelerator_known=False)
        assert findings(rule, LOCAL, unknown, **custom(TORCHSERVE)) == []

    def test_nothing_is_compiled_for_trainium2(self):
        rule = rules.generation_can_be_compiled_for
        assert only(findings(rule, endpoint=on("ml.trn2.48xlarge"), **neuronx())) == (
            "endpoint.instances[0]",
            "ml.trn2.48xlarge has 16 x AWS Trainium2; models are compiled for inf1, inf2 and "
            "trn1 only",
            "Choose a type of one of these families, for example `ml.inf2.xlarge`.",
        )
        for name in ("ml.inf2.xlarge", "ml.trn1.2xlarge", "ml.trn1n.32xlarge"):
            assert findings(rule, endpoint=on(name), **neuronx()) == []


HUB = {"source": "hub", "repository": "bert-base-uncased", "revision": "a" * 40}
COMPILED = {
    "artifacts": {
        "release": None,
        "weights": {"source": "path", "path": "build/bert"},
        "compile": {"instance": "ml.c5.4xlarge"},
    }
}


def test_inf1_has_no_single_precision():
    rule = rules.inf1_has_no_single_precision
    assert only(findings(rule, **neuron(dtype="fp32"), **COMPILED)) == (
        "serving.dtype",
        "inf1 computes every matrix product in bf16 or fp16, and so nothing can be "
        "compiled with `dtype: fp32`",
        "Set `dtype: bf16`, or `fp16` for more digits and a smaller range.",
    )
    # Others, and what is compiled elsewhere, may have it.
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
        assert only(
            findings(rule, PRODUCTION, endpoint=endpoint, **neuron(), **release(wrong))
        ) == (
            "artifacts.release.target",
            f"the model was compiled for {wrong}, but {name} has {has} ({target})",
            remedy,
        )
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
        assert only(findings(rule, **mixed, **neuronx(), **compiled)) == (
            "endpoint.instances[1]",
            "ml.inf2.xlarge needs a model compiled for inf2, ml.trn1.2xlarge one for trn1; "
            "there is one model for both",
            "Choose types of one family.",
        )
        alike = pool("ml.inf2.xlarge", "ml.inf2.8xlarge")
        assert findings(rule, **alike, **neuronx(), **compiled) == []
        # Of a compiled release the rule above says which type does not fit.
        assert findings(rule, **mixed, **neuronx(), **release("inf2")) == []
        # So does the image, of two generations.
        generations = pool("ml.inf1.xlarge", "ml.inf2.xlarge")
        assert findings(rule, **generations, **neuronx(), **compiled) == []
