"""Chat templates: where they are found, what they may do, and that transformers agrees."""

import json

import pytest

from containers.serving.errors import InvalidRequestError
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.stages import copy_chat_files
from containers.tensorrt.openai import chat_template
from containers.tensorrt.openai.chat_template import ChatTemplate, read_chat_template
from containers.tensorrt.openai.template_process import Template
from tests.support.groups import load

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
MESSAGES = [
    {"role": "system", "content": "Answer <briefly> & well."},
    {"role": "user", "content": "  Wie gro\u00df?\n"},
    {"role": "assistant", "content": "So."},
    {"role": "user", "content": "{{ 7 * 7 }}"},
]
CHATML = (
    "{%- for message in messages %}\n"
    "    {{- '<|im_start|>' + message.role + '\\n' }}\n"
    "    {{- message['content'] | trim + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
# Each uses something that plain Jinja has not, or has switched off.
TEMPLATES = {
    "chatml": CHATML,
    "indented blocks": "{% for m in messages %}\n  {% if m.role == 'user' %}\n{{ m.content }}\n"
    "  {% endif %}\n{% endfor %}",
    "loop controls": "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}"
    "{{ m.content }}{% endfor %}",
    "json": "{{ messages | tojson }}{{ messages[0] | tojson(indent=2) }}",
    "special tokens": "{{ bos_token }}{{ messages[1].content }}{{ eos_token }}",
    "undefined names": "[{{ tools }}][{{ documents }}][{{ pad_token }}]",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% endfor %}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}"
    "{% set ns.n = ns.n + loop.index %}{% endfor %}{{ ns.n }}",
    "year": "{{ strftime_now('%Y') }}",
}


@pytest.mark.torch
@pytest.mark.parametrize("source", TEMPLATES.values(), ids=TEMPLATES)
def test_transformers_renders_the_same_text(source):
    theirs = load("transformers.utils.chat_template_utils", group="torch")
    [expected], _ = theirs.render_jinja_template(
        [MESSAGES], chat_template=source, add_generation_prompt=True, **TOKENS
    )
    assert Template(source, TOKENS).render(MESSAGES) == expected


def test_a_chat_becomes_one_prompt():
    *before, after = ChatTemplate(CHATML, TOKENS).render(MESSAGES).split("<|im_end|>\n")
    assert [each.removeprefix("<|im_start|>") for each in before] == [
        f"{message['role']}\n{message['content'].strip()}" for message in MESSAGES
    ]
    assert after == "<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ messages.append(1) }}", "access to attribute 'append' of 'list'"),
        ("{{ messages.__class__.__mro__ }}", "access to attribute '__class__'"),
        ("{{ range(10000000) | list }}", "Range too big"),
        ("{{ messages[0].content + 1 }}", "can only concatenate str"),
    ],
)
def test_a_template_that_fails_says_why(source, reason):
    with pytest.raises(Exception, match=reason):
        Template(source, TOKENS).render(MESSAGES)


# All but the first ended the process, or kept it from answering /ping.
HOSTILE = {
    "not these": ("{{ raise_exception('Roles must alternate.') }}", "Roles must alternate."),
    "constant": ("{{ 'x' * 10**10 }}", "it takes too much memory"),
    "width": ("{{ '%10000000000d' % 1 }}", "it takes too much memory"),
    "prompt": ("{{ messages[0].content * 10**6 }}", "the prompt has more than 16777216 characters"),
    "loops": (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "it takes more than 0.2 seconds",
    ),
}


@pytest.mark.parametrize(("source", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_template_that_takes_too_much_refuses_the_messages(monkeypatch, source, reason):
    monkeypatch.setattr(chat_template, "_MOST_SECONDS", 0.2)
    template = ChatTemplate(
        "{% if messages | length == 1 %}{{ messages[0].content }}{% else %}"
        + source
        + "{% endif %}",
        TOKENS,
    )
    with pytest.raises(InvalidRequestError) as caught:
        template.render(MESSAGES)
    assert str(caught.value) == (
        f"The model's chat template does not accept these messages: {reason}"
    )
    # Other messages are still accepted, in a new process if the first was ended.
    assert template.render(MESSAGES[1:2]) == "  Wie gro\u00df?\n"


def write(directory, config=None, template=None):
    if config is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
    if template is not None:
        (directory / "chat_template.jinja").write_text(template)
    return directory


def rendered(directory):
    template = read_chat_template(directory)
    return template and template.render(MESSAGES)


def test_a_compile_job_keeps_it(tmp_path):
    checkpoint, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
    checkpoint.mkdir()
    scratch.mkdir()
    copy_chat_files(checkpoint, scratch)
    assert rendered(scratch) is None
    copy_chat_files(write(checkpoint, TOKENS, "{{ bos_token }}Hello"), scratch)
    assert rendered(scratch) == "<s>Hello"


PLAIN = {"name": "default", "template": "plain"}
TOOLS = {"name": "tool_use", "template": "tools"}


@pytest.mark.parametrize(
    ("config", "template", "text"),
    [
        (None, None, None),
        ({"bos_token": "<s>"}, None, None),
        ({"chat_template": "older"}, None, "older"),
        ({"chat_template": "older"}, "newer", "newer"),
        # Of several templates the plain one counts.
        ({"chat_template": [TOOLS, PLAIN]}, None, "plain"),
        ({"chat_template": [TOOLS]}, None, None),
        ({"chat_template": [{"name": [], "template": "?"}, TOOLS, PLAIN]}, None, "plain"),
        # Special tokens may be objects.
        (
            {
                "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token }}",
                "bos_token": {"content": "<s>", "lstrip": False},
                "eos_token": "</s>",
                "pad_token": None,
            },
            None,
            "<s></s>",
        ),
    ],
)
def test_it_is_found_in_either_file(tmp_path, config, template, text):
    assert rendered(write(tmp_path, config, template)) == text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"chat_template": 5}, "chat_template must be a string, or an array of objects with name"),
        ({"chat_template": "{% if %}"}, "the chat template is not valid: line 1: Expected an"),
        ({"chat_template": "{{ a | b }}"}, "the chat template is not valid: line 1: No filter"),
        (
            {"chat_template": "{% if a %}" * 500 + "{% endif %}" * 500},
            "the chat template is not valid: maximum recursion depth exceeded",
        ),
        ({"chat_template": "a" * 1_000_001}, "is not valid: it has more than 1000000 characters"),
        ([], "must hold a JSON object"),
    ],
)
def test_what_is_no_template_is_an_operators_error(tmp_path, config, message):
    with pytest.raises(ModelLoadError, match=message):
        read_chat_template(write(tmp_path, config))
