"""What an import writes renders back to the same serving.properties."""

from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from slipway import java_properties
from slipway.config.schema import ModelConfig
from slipway.facts.images import versions
from slipway.facts.lmi.options import OptionFacts
from slipway.facts.lmi.versions import lmi_version
from slipway.importing.draft import KnownFacts
from slipway.importing.lmi.images import FRAMEWORKS
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi import FAMILY
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.properties import FIELDS
from slipway.planning.families.lmi.setup import lmi_setup
from tests.importing.drafts import URI, WEIGHTS, deployment, imported
from tests.support.projects import PRODUCTION, model_config

IMAGES = [(framework, version) for framework in FRAMEWORKS for version in versions(framework)]
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=12).map(
    str.strip
)
HANDLER = b"def handle(inputs): ..."
FORMATTERS = b"@output_formatter\ndef custom(output): ..."
DTYPES = ("auto", "fp16", "fp32", "bf16")
# An import never writes a token.
_NOT_FREE = (*FIELDS, "handler", "revision", "hf_token", "use_auth_token")
BATCHES = (None, None, "auto", "disable", "vllm", "lmi-dist", "trtllm", "scheduler", "deepspeed")


def values(facts: OptionFacts) -> st.SearchStrategy[Any]:
    """Returns values that a config may give an option."""
    if facts.allowed:
        return st.sampled_from(facts.allowed)
    low = 1 if facts.minimum is None else int(facts.minimum)
    high = 512 if facts.maximum is None else int(facts.maximum)
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
    }.get(facts.type, WORDS)


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
    facts = lmi_version(framework, version)
    if has_script:
        serving["script"] = "handlers/chat"
    if not has_script or draw(st.booleans()):
        serving["engine"] = draw(st.sampled_from([None, None, *facts.engines]))
        serving["entry_point"] = draw(st.sampled_from([None, None, *facts.entry_points]))
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
    given = KnownFacts(
        "chat",
        instance=config.endpoint.instances[0],
        framework=lmi.serving.framework,
        version=lmi.serving.version,
        family="other",
        parameters=1_000_000_000,
        weights=WEIGHTS,
    )
    handler = FORMATTERS if lmi.serving.entry_point else HANDLER
    files = {"model.py": handler} if lmi.serving.script else {}
    made = imported(read, given, **files)
    assert deployment(made).properties(URI) == meant
    assert made.problems == ()
    assert (made.draft.left_out, made.draft.changed, made.added) == ((), (), {})
