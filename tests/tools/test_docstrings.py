"""The check of docstrings and comments."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools.docstrings import described_methods, findings, main
from tools.prose import LONGEST_WORDS

ROOT = Path(__file__).parents[2]
HALF = LONGEST_WORDS // 2 + 1
TOO_LONG = f"{LONGEST_WORDS + 1} words, at most {LONGEST_WORDS}"
LONG = " ".join(["Word", *["word"] * LONGEST_WORDS])


def messages(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.message) for finding in findings("module.py", text)]


def function(docstring: str, *, name: str = "copy", parameters: str = "a, b, c") -> str:
    return f'def {name}({parameters}):\n    """{docstring}"""\n'


def within(header: str, text: str) -> str:
    return f"{header}\n{textwrap.indent(text, '    ')}"


def described(**parameters: str) -> str:
    lines = "".join(f"        {name}: {text}\n" for name, text in parameters.items())
    return f"Copies.\n\n    Args:\n{lines}    "


def test_a_public_function_with_three_parameters_describes_them() -> None:
    assert messages(function("Copies.")) == [(2, "copy has 3 parameters and no Args section")]
    assert messages(function("Copies.", parameters="a, *, b, c")) == [
        (2, "copy has 3 parameters and no Args section")
    ]
    assert messages(function(described(a="from here.", b="to there.", c="bytes."))) == []


@pytest.mark.parametrize(
    "text",
    [
        function("Copies.", parameters="a, b"),
        function("Copies.", parameters="a, b, *more, **named"),
        function("Copies.", name="_copy"),
        within("class A:", function("Copies.", parameters="self, a, b")),
        within("class _A:", function("Copies.")),
        within("def outer():", function("Copies.")),
    ],
)
def test_a_function_with_fewer_parameters_or_that_is_not_public_need_not(text: str) -> None:
    assert messages(text) == []


def test_a_method_is_checked_as_a_function_is() -> None:
    assert messages(within("class A:", function("Copies.", parameters="self, a, b, c"))) == [
        (3, "copy has 3 parameters and no Args section")
    ]


def test_a_method_need_not_repeat_what_its_base_class_describes() -> None:
    method = function(
        described(a="from here.", b="to there.", c="bytes."), parameters="self, a, b, c"
    )
    base = within("class Base(Protocol[T]):", method)
    short = function("Copies.", parameters="self, a, b, c")
    derived = within("class Derived(bases.Base[int]):", short)
    last = within("class Last(Derived):", short)
    found = described_methods([last, derived, base])
    assert found == {name: frozenset({"copy"}) for name in ("Base", "Derived", "Last")}
    assert list(findings("module.py", last + derived + base, found)) == []
    assert len(messages(last + derived + base)) == 2


def test_the_command_knows_base_classes_of_other_modules(tmp_path: Path) -> None:
    method = function(described(a="from.", b="to.", c="bytes."), parameters="self, a, b, c")
    (tmp_path / "base.py").write_text(within("class Base:", method), "utf-8")
    short = within("class Derived(Base):", function("Copies.", parameters="self, a, b, c"))
    (tmp_path / "derived.py").write_text(short, "utf-8")
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path / "derived.py")]) == 1


def test_a_description_that_repeats_the_name_is_found() -> None:
    text = described(max_bytes="The max bytes.", b="to\n            there.")
    assert messages(function(text, parameters="max_bytes, b")) == [
        (2, "copy: the description of max_bytes repeats its name")
    ]


def test_a_description_of_a_parameter_that_does_not_exist_is_found() -> None:
    text = f"{described(old='from here.', more='paths.')}\n\n    Raises:\n        OSError: x."
    assert messages(function(text, parameters="*more")) == [(2, "copy has no parameter old")]


def test_a_docstring_begins_with_what_the_function_returns_or_does() -> None:
    assert messages(function("What is copied.", name="_copy")) == [
        (2, '_copy begins with "What": say first what it returns or does')
    ]
    assert messages(function("Copy a file.", name="_copy")) == [
        (2, '_copy begins with "Copy": state what it does, as in "Returns"')
    ]
    assert messages(function("Whether it copies.", name="_copy")) == []


def test_a_command_tells_its_user_what_to_do() -> None:
    assert messages(f"@app.command()\n{function('Copy a file.')}") == []
    assert messages(f"{function('Copy a file.')}app.command()(copy)\n") == []
    assert len(messages(f"{function('Copy a file.')}app.command()\n")) == 2


def test_long_sentences_and_turns_are_found_in_docstrings_and_comments() -> None:
    assert messages(f'"""{LONG}."""\n') == [(1, f"{TOO_LONG}: Word word word word word word ...")]
    half = " ".join(["word"] * HALF)
    assert messages(f"a = 1\n# {half}\n# {half}\nb = 2  # {half}\nc = 3  # {half}\n") == [
        (2, f"{TOO_LONG}: word word word word word word ...")
    ]
    assert messages('class A:\n    """A class of ours."""\n') == [
        (2, '"of ours": write "Slipway\'s" before the noun: A class of ours. ...')
    ]
    assert messages("a = 1  # hence\n") == [(1, '"hence": write "therefore": hence ...')]


def test_code_tables_and_formulas_are_left_out() -> None:
    assert messages(f'"""Text: `{LONG}`.\n\n| {LONG} |\n\n    x = {LONG}\n"""\n# `hence`\n') == []
    assert messages(f'"""Text.\n\n```sh\n{LONG}\n```\n"""\n') == []


def test_a_described_parameter_is_a_sentence_of_its_own() -> None:
    half = " ".join(["word"] * HALF)
    assert messages(function(described(a=half, b=half), parameters="a, b")) == []


def test_the_command_fails_where_it_finds_something(tmp_path: Path, capsys) -> None:
    module = tmp_path / "folder" / "module.py"
    module.parent.mkdir()
    module.write_text("# A class of ours.\n", "utf-8")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f'{module}:1: "of ours": write "Slipway\'s"')
    module.write_text("# A class.\n", "utf-8")
    assert main([str(tmp_path), str(module)]) == 0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("def copy():\n    pass\n", "D103"),
        ('def copy(a, b, c):\n    """Copies.\n\n    Args:\n        a: from.\n    """\n', "D417"),
    ],
)
def test_ruff_finds_missing_docstrings_and_partial_descriptions(text: str, rule: str) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format", "concise", "-"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
    )
    assert f": {rule} " in found.stdout
