"""serving.properties of LMI: no setting is dropped, and what an import writes renders back.

Settings are drawn, and taken from public files. One that is not rendered again is listed with a
reason.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import event, example, given, reject, settings
from hypothesis import strategies as st

from slipway import java_properties
from slipway.config.schema import ModelConfig
from slipway.errors import UserError
from slipway.facts.images import versions
from slipway.facts.lmi.options import OptionFacts
from slipway.facts.lmi.versions import lmi_version, usable_versions
from slipway.importing.draft import KnownFacts
from slipway.importing.lmi.drafts import LmiDraft
from slipway.importing.lmi.images import FRAMEWORKS, suitable_draft
from slipway.importing.lmi.source import PROPERTIES_FILE, LmiSource, read_directory
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi import FAMILY
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.properties import FIELDS
from slipway.planning.families.lmi.setup import lmi_setup
from slipway.planning.lock import Lock
from slipway.planning.resolve import resolve
from tests.support.projects import PRODUCTION, model_config

WEIGHTS = {"source": "s3", "uri": "s3://acme-models/chat/"}
URI = WEIGHTS["uri"]
IMAGES = [(framework, version) for framework in FRAMEWORKS for version in versions(framework)]
USABLE = [
    (framework, version) for framework in FRAMEWORKS for version in usable_versions(framework)
]
# Said by `artifacts.weights`, or by the image alone.
ELSEWHERE = {"option.model_id", "option.s3url", "option.entryPoint"}


def facts(**facts: Any) -> KnownFacts:
    """Returns what is known beside the settings, with other facts in place of some."""
    network = {"instance": "ml.p4d.24xlarge", "family": "other", "parameters": 1_000_000_000}
    return KnownFacts("chat", **{**network, "weights": WEIGHTS, **facts})


def imported(settings: Mapping[str, str], given: KnownFacts, **files: bytes) -> LmiDraft:
    """Imports the settings of a folder, with further files by name."""
    source = LmiSource(
        origin=f"old/{PROPERTIES_FILE}", kind=PROPERTIES_FILE, settings=settings, files=files
    )
    return suitable_draft(source, given, {}, PRODUCTION)


def config_of(made: LmiDraft) -> ModelConfig:
    """Returns the config that the YAML of a draft is."""
    content: Any = yaml.safe_load(made.draft.render("old"))
    return ModelConfig.model_validate(content)


def reasons(made: LmiDraft) -> dict[str, str]:
    """Returns the reason of each setting that the config does not have."""
    return {setting.shown: setting.reason for setting in made.draft.left_out}


def check_each_is_rendered_or_listed(
    read: Mapping[str, str], made: LmiDraft, elsewhere: str
) -> None:
    listed = {setting.name for setting in (*made.draft.left_out, *made.draft.changed)}
    for key in read.keys() - listed - ELSEWHERE - {elsewhere}:
        rendered = made.rendered[key]
        is_chosen = read[key] == "max" and rendered.isdigit()
        assert is_chosen or rendered.lower() == read[key].lower(), key


# Drawn configs

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=12).map(
    str.strip
)
HANDLER = b"def handle(inputs): ..."
FORMATTERS = b"@output_formatter\ndef custom(output): ..."
DTYPES = ("auto", "fp16", "fp32", "bf16")
# An import never writes a token.
_NOT_FREE = (*FIELDS, "handler", "revision", "hf_token", "use_auth_token")
BATCHES = (None, None, "auto", "disable", "vllm", "lmi-dist", "trtllm", "scheduler", "deepspeed")


def values(option: OptionFacts) -> st.SearchStrategy[Any]:
    """Returns values that a config may give an option."""
    if option.allowed:
        return st.sampled_from(option.allowed)
    low = 1 if option.minimum is None else int(option.minimum)
    high = 512 if option.maximum is None else int(option.maximum)
    numbers = st.integers(low, max(low, high))
    return {
        "int": numbers,
        "int or max": numbers,
        "suffixed int": numbers,
        "suffixed int or auto": numbers,
        "float": st.sampled_from([0.1, 0.25, 0.95]),
        "bool": st.booleans(),
        "int list": st.just("1,2,4"),
        "float list": st.just("0.5,0.5"),
        "map": st.just("a=b,c=d"),
        "json": st.just('{"a": [1, "b"]}'),
    }.get(option.type, WORDS)


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    """Draws configs of every image that break no rule of LMI."""
    framework, version = draw(st.sampled_from(IMAGES))
    is_neuron = framework == "djl-neuronx"
    has_script = draw(st.booleans())
    serving: dict[str, Any] = {
        "container": "lmi",
        "framework": framework,
        "version": version,
        "tensor_parallel_degree": draw(st.sampled_from([1, 2, 4, 8])),
        "dtype": draw(st.sampled_from(DTYPES)),
        "rolling_batch": draw(st.sampled_from(BATCHES)),
        "max_rolling_batch_size": draw(st.sampled_from([None, 8, 64])),
        "max_batch_size": draw(st.sampled_from([1, 1, 1, 4])),
        "max_queue_length": draw(st.sampled_from([1000, 50])),
        "predict_timeout_seconds": draw(st.integers(1, 60)),
        "model_loading_timeout_seconds": draw(st.sampled_from([None, 600])),
        "trust_remote_code": draw(st.booleans()),
    }
    version_facts = lmi_version(framework, version)
    if has_script:
        serving["script"] = "handlers/chat"
    if not has_script or draw(st.booleans()):
        serving["engine"] = draw(st.sampled_from([None, None, *version_facts.engines]))
        serving["entry_point"] = draw(st.sampled_from([None, None, *version_facts.entry_points]))
    setup = lmi_setup(_lmi(serving).serving)
    known = {**setup.version.server_keys, **setup.options}
    free = sorted(key for key in known if key not in _NOT_FREE)
    keys = draw(st.lists(st.sampled_from(free), unique=True, max_size=4)) if free else []
    serving["options"] = {key: draw(values(known[key])) for key in keys}
    instance = "ml.inf2.48xlarge" if is_neuron else "ml.p4d.24xlarge"
    return _accepted(serving, instance)


def _lmi(serving: dict[str, Any], instance: str = "ml.p4d.24xlarge") -> Lmi:
    config = model_config(
        "chat",
        model={"family": "other", "parameters": 1_000_000_000},
        serving=serving,
        artifacts={"weights": WEIGHTS, "sample": None, "release": None},
        endpoint={
            "instances": [instance],
            "network_isolation": False,
            "container_startup_health_check_timeout_seconds": 1800,
        },
    )
    found = deployment_of(config, PRODUCTION)
    assert isinstance(found, Lmi)
    return found


def _accepted(serving: dict[str, Any], instance: str) -> ModelConfig:
    """Returns a config like the given one, without what a rule refuses."""
    while problems := list(FAMILY.problems(lmi := _lmi(serving, instance))):
        _, name, *key = problems[0].field
        if key:
            options = {each: v for each, v in serving["options"].items() if each != key[0]}
            serving = {**serving, "options": options}
        elif name == "dtype" and serving["dtype"] in DTYPES[:-1]:
            serving = {**serving, "dtype": DTYPES[DTYPES.index(serving["dtype"]) + 1]}
        elif name in serving and name not in ("framework", "version", "dtype"):
            serving = {each: value for each, value in serving.items() if each != name}
        elif "rolling_batch" in serving:
            serving = {each: v for each, v in serving.items() if each != "rolling_batch"}
        else:
            reject()  # such as an image that copies no weights from S3
    return lmi.config


@settings(max_examples=100, deadline=None)
@given(configs())
def test_what_is_rendered_comes_back(config):
    lmi = deployment_of(config, PRODUCTION)
    assert isinstance(lmi, Lmi)
    meant = lmi.properties(URI)
    read = java_properties.parse(java_properties.render(meant))
    serving = lmi.serving
    known = facts(
        instance=config.endpoint.instances[0],
        framework=serving.framework,
        version=serving.version,
    )
    handler = FORMATTERS if serving.entry_point else HANDLER
    files = {"model.py": handler} if serving.script else {}
    made = imported(read, known, **files)
    again = deployment_of(config_of(made), PRODUCTION)
    assert isinstance(again, Lmi)
    assert again.properties(URI) == meant
    assert made.problems == ()
    assert (made.draft.left_out, made.draft.changed, made.added) == ((), (), {})


# Drawn settings

OPTIONS = sorted(
    {
        option
        for framework, version in USABLE[::6]
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


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(USABLE), st.dictionaries(KEYS, VALUES, max_size=6))
@example(("djl-lmi", "0.36.0"), {"option.max_rolling_batch_size": "8", "batch_size": "4"})
@example(("djl-lmi", "0.30.0"), {"option.batch_size": "4", "option.env": "A=1,B"})
@example(("djl-deepspeed", "0.21.0"), {"option.trust_remote_code": "true", "": "x"})
@example(("djl-deepspeed", "0.27.0"), {"option.pipeline_parallel_degree": "1", "option.task": " a"})
def test_each_setting_is_rendered_or_listed(image, properties):
    framework, version = image
    instance = "ml.inf2.48xlarge" if framework == "djl-neuronx" else "ml.p4d.24xlarge"
    read = java_properties.parse(java_properties.render(properties))
    made = imported(read, facts(instance=instance, framework=framework, version=version))
    event("rendered" if made.rendered else "refused")
    if not made.rendered:
        # A rule or the schema refuses the file, and the report has the reason.
        return
    config_of(made)
    check_each_is_rendered_or_listed(read, made, "engine")


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
    given = facts(framework="djl-deepspeed", version="0.24.0", family="opt")
    settings = {"option.model_id": "s3://a/b/", "option.s3url": "s3://c/d/", "option.dtype": "fp16"}
    assert reasons(imported(settings, given)) == {
        "option.s3url=s3://c/d/": "`option.model_id` names the weights."
    }


def test_a_secret_is_neither_written_nor_shown():
    token = "hf_" + "b" * 34
    settings = {"option.hf_token": token, "option.env": f"HF_TOKEN={token},A=1"}
    made = imported(settings, facts(family="llama"))
    text = made.draft.render("old")
    assert token not in text
    assert made.draft.content["serving"]["environment"] == {"A": "1"}
    assert reasons(made) == dict.fromkeys(
        ["option.hf_token=(hidden)", "HF_TOKEN=(hidden)"],
        "a secret belongs in no file. `slipway publish` takes HF_TOKEN from the shell.",
    )


# Public files

PUBLIC: dict[str, Any] = json.loads(
    Path(__file__).with_name("public_properties.json").read_text("utf-8")
)
FILES: list[dict[str, Any]] = PUBLIC["files"]
ACCEPTED = [file for file in FILES if "refused" not in file]
REFUSED = [file for file in FILES if "refused" in file]


def from_public(file: dict[str, Any]) -> LmiDraft:
    """Imports and plans a file; raises `UserError` with all that is refused."""
    names = ("instance", "framework", "version", "family", "parameters", "size_gb")
    # Of the files beside it only whether they have a handler counts.
    content = b"def handle(inputs): ..."
    if file.get("model_py") == "formatters":
        content = b"@input_formatter\ndef custom(inputs): ..."
    files = dict.fromkeys(file.get("files", ()), content)
    made = imported(file["properties"], facts(**{name: file.get(name) for name in names}), **files)
    resolve(deployment_of(config_of(made), PRODUCTION), Lock(), {}, allow_unpublished=True)
    return made


def name(file: dict[str, Any]) -> str:
    return f"{file['repository']}/{file['path'].strip()}"


def test_there_are_at_least_sixty_distinct_files_and_nine_of_ten_are_accepted():
    distinct = {json.dumps(file["properties"], sort_keys=True) for file in FILES}
    assert len(distinct) == len(FILES) >= 60
    assert len(ACCEPTED) >= 0.9 * len(FILES)
    assert len({file["repository"] for file in FILES}) >= 6


@pytest.mark.parametrize("file", ACCEPTED, ids=name)
def test_a_public_file_plans_and_loses_no_setting(file):
    check_each_is_rendered_or_listed(file["properties"], from_public(file), "option.revision")


@pytest.mark.parametrize("file", REFUSED, ids=name)
def test_the_rest_is_refused_for_the_reason_in_its_source(file):
    assert file["refused"]["source"]
    with pytest.raises(UserError) as refused:
        from_public(file)
    assert [problem.code for problem in refused.value.problems] == file["refused"]["codes"]
