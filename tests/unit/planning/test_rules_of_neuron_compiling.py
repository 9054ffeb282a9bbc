"""Models compiled for Neuron: refusals word for word, and configs that pass."""

import pytest

from slipway.planning.families.neuron import rules
from tests.support.projects import LOCAL, PRODUCTION
from tests.unit.planning.neuron_findings import neuron, neuronx, pool, release
from tests.unit.planning.rule_findings import findings, on, only

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
    # Others and what is compiled elsewhere may have it.
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
