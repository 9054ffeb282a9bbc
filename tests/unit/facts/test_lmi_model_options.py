"""Options that models ask for: rows with a source, for images whose vLLM has the parser."""

import json

import pytest

from slipway.facts.lmi.model_options import model_options
from slipway.facts.lmi.options import table_of
from slipway.facts.lmi.versions import lmi_version

TABLE = table_of("lmi/lmi_model_options.json")
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


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: json.dumps(row["options"]))
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
    assert set(TABLE["sources"]) == {row["source"] for row in TABLE["rows"]}
