"""The tables of LMI's options: every row has a source, and nothing contradicts itself."""

import itertools
import json
import re
import time

import pytest

from slipway.facts import images
from slipway.facts.lmi import options as lmi_options
from slipway.facts.lmi.model_options import model_options
from slipway.facts.lmi.options import table_of
from slipway.facts.lmi.versions import lmi_version
from tests.unit.facts.lmi_images import HANDLERS, IMAGES, VERSIONS

TABLE, OPTIONS, VLLM = (
    lmi_options.table_of(f"lmi/{name}.json") for name in ("lmi", "lmi_options", "lmi_vllm")
)


def test_every_image_has_its_facts_and_versions_are_in_order():
    assert IMAGES
    assert {
        (framework, version)
        for framework, spans in TABLE["images"].items()
        for version in VERSIONS
        if any(covers(span, version) for span in spans)
    } == set(IMAGES)
    numbers = [[int(part) for part in version.split(".")] for version in VERSIONS]
    assert numbers == sorted(numbers)


def covers(span: str, version: str) -> bool:
    first, last = span.split("..")
    return VERSIONS.index(first) <= VERSIONS.index(version) <= VERSIONS.index(last or VERSIONS[-1])


@pytest.mark.parametrize("image", IMAGES)
def test_every_version_has_a_source(image):
    assert re.fullmatch(
        r"deepjavalibrary/djl-serving, \S+ \([0-9a-f]{10}\)", lmi_version(*image).source
    )


def test_every_group_and_version_has_a_source_or_says_whose_facts_it_has():
    about_the_file = {"as_of", "sources", "option_environment"}
    assert set(TABLE) - about_the_file == set(TABLE["sources"])
    assert set(OPTIONS["options"]) == set(OPTIONS["sources"]) - {"repository"}
    assert all(len(source) > 15 for source in TABLE["sources"].values())
    assert len({content["as_of"] for content in (TABLE, OPTIONS, VLLM)}) == 1
    facts = lmi_version("djl-lmi", "0.38.0")
    assert facts.facts_of == "0.36.0"
    assert facts.source == lmi_version("djl-lmi", "0.36.0").source
    assert lmi_version("djl-lmi", "0.36.0").facts_of is None


def rows():
    """Yields where each row with a span is, and the rows of the same name."""
    for key, found in TABLE["server_keys"].items():
        yield f"server key {key}", found
    for name, found in TABLE["server_variables"].items():
        yield f"server variable {name}", found
    for group, options in OPTIONS["options"].items():
        for name, found in options.items():
            yield f"{group} {name}", found
    for name, found in VLLM["argument_types"].items():
        yield f"vLLM's {name}", found
    yield "weights", TABLE["weights"]


def test_the_types_are_of_vllms_arguments():
    assert set(VLLM["argument_types"]) <= set(VLLM["engine_arguments"])
    assert len(VLLM["argument_types"]) > 150
    for version, quantization in (("0.32.0", "aqlm"), ("0.34.0", "mxfp4"), ("0.38.0", "auto_awq")):
        facts = lmi_version("djl-lmi", version)
        options = facts.options_for("huggingface", "vllm")
        assert options["gpu_memory_utilization"].maximum == 1
        for name in ("quantize", "quantization"):
            assert quantization in (options[name].allowed or ())
        # The table of images names the vLLM.
        vllm = images.image("djl-lmi", version, "us-east-1").components["vllm"]
        assert options["gpu_memory_utilization"].source.startswith(f"vllm {vllm}, ")


@pytest.mark.parametrize(("where", "found"), [pytest.param(*row, id=row[0]) for row in rows()])
def test_spans_follow_each_other(where, found):
    # An open end is the last version.
    spans = [row["in"].split("..") for row in found]
    ends = [[VERSIONS.index(end or VERSIONS[-1]) for end in span] for span in spans]
    assert all(first <= last for first, last in ends)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


PYTHON_TYPES = {
    "int": int,
    "int or max": int,
    "float": (int, float),
    "bool": bool,
    "str": str,
    "path": str,
}


@pytest.mark.parametrize(("framework", "version", "handler"), HANDLERS)
def test_an_option_does_not_contradict_itself(framework, version, handler):
    facts = lmi_version(framework, version)
    found = facts.options_for(handler)
    assert list(found) == sorted(found)
    batches = set(found["rolling_batch"].allowed or ()) if "rolling_batch" in found else set()
    for name, each in (*found.items(), *facts.server_keys.items()):
        assert each.name == name
        assert each.source
        if each.default is not None and each.type in PYTHON_TYPES:
            assert isinstance(each.default, PYTHON_TYPES[each.type]), name
            assert (each.type == "bool") == isinstance(each.default, bool), name
        if each.allowed is not None:
            assert each.type in ("str", "int"), name
            assert len(set(each.allowed)) == len(each.allowed) > 0, name
            assert each.default in (None, *each.allowed), name
        if each.default is not None:
            assert each.minimum is None or each.default >= each.minimum, name
            assert each.maximum is None or each.default <= each.maximum, name
        if each.alias_of:
            assert each.alias_of in {*found, *facts.server_keys}, name
        assert set(each.only_engines) <= set(facts.engines), name
        assert set(each.required_by_engines) <= set(facts.engines), name
        assert set(each.rolling_batches) <= batches, name


@pytest.mark.parametrize(("framework", "version", "handler"), HANDLERS)
def test_options_of_each_rolling_batch_are_among_all(framework, version, handler):
    facts = lmi_version(framework, version)
    found = facts.options_for(handler)
    if "rolling_batch" not in found:
        return
    together = set()
    for batch in found["rolling_batch"].allowed:
        together |= set(facts.options_for(handler, batch))
    assert together == set(found)


@pytest.mark.parametrize("image", IMAGES)
def test_a_version_does_not_contradict_itself(image):
    facts = lmi_version(*image)
    for family in facts.model_families:
        assert family.handler in facts.handlers
        assert family.engine in facts.engines
    assert all(defect.handler in facts.handlers for defect in facts.defects)
    for engines in facts.rolling_batch_engines.values():
        assert set(engines) <= set(facts.engines)
    # An engine that only another image has gets the entry point that fails there.
    for engine in {"Python", "MPI"} & set(facts.engines):
        for rolling_batch in ("auto", "vllm", "disable"):
            default = facts.default_entry_point(engine, rolling_batch=rolling_batch)
            assert default is None or default in facts.entry_points


def test_reading_is_a_matter_of_milliseconds():
    def seconds() -> float:
        read = (lmi_options.table_of, lmi_options._positions, lmi_options.covers)
        for cache in (*read, lmi_options.options_of, lmi_version):
            cache.cache_clear()
        start = time.process_time()
        lmi_version("djl-lmi", "0.36.0").options_for("vllm_async")
        return time.process_time() - start

    # About 3.4 ms on a quiet machine; the bound is for a mistake, not for a busy processor.
    assert min(seconds() for _ in range(10)) < 0.04


MODEL_TABLE = table_of("lmi/lmi_model_options.json")
NEWEST = "0.38.0"
# Types that Transformers does not have: the checkpoint brings their code.
REMOTE = {"internlm2", "phi3_v"}


def told(version, family, architecture=None):
    return [
        (each.purpose, dict(each.options)) for each in model_options(version, family, architecture)
    ]


def test_a_parser_is_offered_from_its_first_image_and_models_of_a_family_differ_by_notes():
    tools = {"enable_auto_tool_choice": True, "tool_call_parser": "openai"}
    reasoning = {"reasoning_parser": "openai_gptoss"}
    assert told("0.33.0", "gpt_oss") == []
    assert told("0.34.0", "gpt_oss") == [("tools", tools), ("reasoning", reasoning)]
    found = [each for each in model_options(NEWEST, "qwen3_moe") if each.purpose == "tools"]
    assert [(each.options["tool_call_parser"], each.note) for each in found] == [
        ("hermes", "not for Qwen3-Coder"),
        ("qwen3_xml", "for Qwen3-Coder"),
    ]


def test_a_template_is_a_file_of_the_model_and_images_and_code_have_their_options():
    [found] = [each for each in model_options(NEWEST, "llama4") if each.purpose == "tools"]
    assert found.template == "tool_chat_template_llama4_pythonic.jinja"
    assert "docs/features/tool_calling.md" in found.source
    assert ("images", {"limit_mm_per_prompt": "image=1"}) in told("0.30.0", "llava")
    assert ("images", {"limit_mm_per_prompt": '{"image": 1}'}) in told("0.33.0", "gemma3")
    trusted = ("remote_code", {"trust_remote_code": True})
    assert trusted in told(NEWEST, "internvl_chat", "InternVLChatModel")
    assert told(NEWEST, "qwen3", "Qwen3ForCausalLM") == told(NEWEST, "qwen3")


@pytest.mark.parametrize("row", MODEL_TABLE["rows"], ids=lambda row: json.dumps(row["options"]))
def test_a_row_is_for_a_family_and_options_that_there_are(row):
    assert set(row["families"]) <= set(table_of("lmi/lmi_engines.json")["families"]) | REMOTE
    applies = [
        version
        for version in table_of("lmi/lmi_engines.json")["vllm"]
        if dict(row["options"]) in [options for _, options in told(version, row["families"][0])]
    ]
    assert applies
    known = lmi_version("djl-lmi", applies[-1]).options_for("huggingface", "vllm")
    assert set(row["options"]) <= set(known)


def test_every_source_is_of_a_row():
    assert set(MODEL_TABLE["sources"]) == {row["source"] for row in MODEL_TABLE["rows"]}
