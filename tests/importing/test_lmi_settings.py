"""No setting of an imported file is dropped: it is rendered again, or listed with a reason."""

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from slipway import java_properties
from slipway.facts.lmi.versions import lmi_version, usable_versions
from slipway.importing.draft import KnownFacts
from slipway.importing.lmi.images import FRAMEWORKS
from slipway.importing.lmi.source import read_directory
from tests.importing.drafts import WEIGHTS, config_of, imported, reasons

IMAGES = [
    (framework, version) for framework in FRAMEWORKS for version in usable_versions(framework)
]
OPTIONS = sorted(
    {
        option
        for framework, version in IMAGES[::6]
        for handler in lmi_version(framework, version).handlers
        for option in lmi_version(framework, version).options_for(handler)
        if option != "entryPoint"
    }
)
NOISE = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEYS = st.one_of(
    st.sampled_from(OPTIONS).map("option.{}".format),
    st.sampled_from(["engine", "batch_size", "max_batch_delay", "job_queue_size", "minWorkers"]),
    st.sampled_from(OPTIONS),
    NOISE,
    NOISE.map("option.{}".format),
)
VALUES = st.one_of(
    st.sampled_from(["true", "False", "auto", "max", "disable", "vllm", "MPI", "fp16", "a=b"]),
    st.integers(-1, 5000).map(str),
    st.floats(0, 1).map(str),
    NOISE,
)
# Said by the engine and the weights of the config, or by the image alone.
ELSEWHERE = {"engine", "option.entryPoint"}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(IMAGES), st.dictionaries(KEYS, VALUES, max_size=6))
@example(("djl-lmi", "0.36.0"), {"option.max_rolling_batch_size": "8", "batch_size": "4"})
@example(("djl-lmi", "0.30.0"), {"option.batch_size": "4", "option.env": "A=1,B"})
@example(("djl-deepspeed", "0.21.0"), {"option.trust_remote_code": "true", "": "x"})
@example(("djl-deepspeed", "0.27.0"), {"option.pipeline_parallel_degree": "1", "option.task": " a"})
def test_each_setting_is_rendered_or_listed(image, properties):
    framework, version = image
    instance = "ml.inf2.48xlarge" if framework == "djl-neuronx" else "ml.p4d.24xlarge"
    facts = KnownFacts(
        "chat", instance=instance, framework=framework, version=version, family="other",
        parameters=1_000_000_000, weights=WEIGHTS,
    )  # fmt: skip
    read = java_properties.parse(java_properties.render(properties))
    made = imported(read, facts)
    event("rendered" if made.rendered else "refused")
    if not made.rendered:
        # A rule or the schema refuses the file, and the report has the reason.
        return
    config_of(made)
    listed = {setting.name for setting in (*made.draft.left_out, *made.draft.changed)}
    for key, value in read.items():
        if key in listed or key in ELSEWHERE:
            continue
        if key in ("option.model_id", "option.s3url"):
            continue  # the weights of the config
        rendered = made.rendered[key]
        assert rendered.lower() == value.lower() or value == "max", (key, value, rendered)


def test_the_file_is_read_as_java_reads_it(tmp_path):
    (tmp_path / "serving.properties").write_bytes(
        b"! a comment\r\n"
        b"  option.task : text-\\\r\n     generation\r\n"
        b"option.model_name=caf\xe9 \\u4f60\\u597d\n"
        b"option.dtype=fp32\n"
        b"option.dtype fp16\n"
    )
    source = read_directory(tmp_path, "old")
    assert source.settings == {
        "option.task": "text-generation",
        "option.model_name": "caf\u00e9 \u4f60\u597d",
        "option.dtype": "fp16",
    }
    assert [(each.shown, each.reason) for each in source.repeated] == [
        ("option.dtype=fp32", "line 6 has the key again, and wins.")
    ]


def test_weights_are_named_once():
    given = KnownFacts(
        "chat",
        instance="ml.g5.2xlarge",
        framework="djl-deepspeed",
        version="0.24.0",
        family="opt",
        parameters=1_300_000_000,
        weights=WEIGHTS,
    )
    settings = {"option.model_id": "s3://a/b/", "option.s3url": "s3://c/d/", "option.dtype": "fp16"}
    assert reasons(imported(settings, given)) == {
        "option.s3url=s3://c/d/": "`option.model_id` names the weights."
    }


def test_a_secret_is_neither_written_nor_shown():
    token = "hf_" + "b" * 34
    settings = {"option.hf_token": token, "option.env": f"HF_TOKEN={token},A=1"}
    made = imported(settings)
    text = made.draft.render("old")
    assert token not in text
    assert made.draft.content["serving"]["environment"] == {"A": "1"}
    assert reasons(made) == dict.fromkeys(
        ["option.hf_token=(hidden)", "HF_TOKEN=(hidden)"],
        "a secret belongs in no file. `slipway publish` takes HF_TOKEN from the shell.",
    )
