"""A Triton repository of the user's own: what is refused, where, and with which remedy."""

import re
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool, message_factory, text_format
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.errors import UserError
from slipway.facts.triton.model_config import enums, messages
from slipway.planning.directory import LARGEST_TEXT_BYTES, Directory
from slipway.planning.families.triton.repository import check_repository
from slipway.planning.families.triton.repository.config_file import read_config
from slipway.planning.families.triton.repository.text_format import parse
from slipway.project import Project
from tests.support.pages import ROOT
from tests.support.projects import write_project
from tests.unit.planning.triton_repositories import (
    CASES,
    ECHO,
    PIPELINE,
    REPORT,
    Case,
    check,
    echo,
    report,
)

CONFIG = """\
name: own
description: Models of the user's own
model: {family: t5, parameters: 60506624}
serving:
  container: triton
  version: "24.09"
  backend: python
  repository: triton/own
artifacts: {}
endpoint:
  instances: [ml.c5.xlarge]
alarms:
  model_latency_p99_milliseconds: 600
"""


def test_every_fault_is_reported_with_its_place_and_its_remedy():
    assert report() == REPORT.read_text("utf-8")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.server_takes])
def test_slipway_is_stricter_than_the_server_in_these_cases(name):
    assert check(CASES[name]).problems


def test_a_later_release_is_named():
    case = Case(echo(new="model_metrics {}\n"))
    assert not check(case, release="25.04").problems
    [problem] = check(case, release="24.09").problems
    assert problem.message == (
        "Triton 24.09 does not know the field `model_metrics` of config.pbtxt"
    )
    assert problem.remedy == "Remove it, or set `version` to 25.04 or later."
    # TensorFlow ended.
    files = {
        "net/config.pbtxt": 'platform: "tensorflow_savedmodel"',
        "net/1/model.savedmodel/a": "",
    }
    assert not check(Case(files), release="24.09").problems
    [problem] = check(Case(files), release="25.04").problems
    assert problem.message == "AWS's image of Triton 25.04 has no backend `tensorflow`"


def test_what_is_no_text_is_not_read():
    sizes = {"echo/config.pbtxt": LARGEST_TEXT_BYTES + 1, "echo/1/model.py": 1}
    directory = Directory("triton/own", ("serving", "repository"), sizes)
    findings = check_repository(directory, default_model=None, release="24.09", variables={})
    assert list(map(str, findings.problems)) == [
        "triton/own/echo/config.pbtxt: the file is 1,000,001 bytes; at most 1,000,000 are read "
        "[SW102]\n    Put data into files of their own; config.pbtxt has settings alone."
    ]
    # Bytes that are no text have a line.
    texts = {"echo/config.pbtxt": b'name: "echo"\nbackend: "\xff"\n'}
    sizes = {"echo/config.pbtxt": 9, "echo/1/model.py": 1}
    directory = Directory("triton/own", ("serving", "repository"), sizes, texts)
    findings = check_repository(directory, default_model=None, release="24.09", variables={})
    [problem] = findings.problems
    assert str(problem).startswith("triton/own/echo/config.pbtxt:2:1: not protobuf's text format")


def test_variables_of_the_container_count():
    case = Case(
        echo(new="model_transaction_policy { decoupled: true }\n"),
        variables={"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream"},
    )
    assert not check(case).problems
    # Models that a model calls itself are loaded by a variable.
    case = Case(
        {**echo(), **echo(name="again")},
        default_model="echo",
        variables={"SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--load-model=again"},
    )
    assert not check(case).warnings


@pytest.mark.parametrize(
    ("batching", "codes"),
    [
        ("max_queue_delay_microseconds: 100", []),
        ("default_queue_policy { timeout_action: REJECT }", []),
        ("default_queue_policy { max_queue_size: 64 }", ["triton-queue-policy"]),
        ("default_queue_policy { default_timeout_microseconds: 9 }", ["triton-queue-policy"]),
        ("default_queue_policy { allow_timeout_override: true }", ["triton-queue-policy"]),
        ("priority_levels: 2 default_priority_level: 1", ["triton-queue-policy"]),
    ],
)
def test_a_queue_policy_that_makes_requests_wait(batching, codes):
    found = check(Case(echo(new=f"dynamic_batching {{ {batching} }}\n")))
    assert not found.problems
    assert [warning.code for warning in found.warnings] == codes


def test_a_group_on_gpus_needs_one(tmp_path):
    project = _own_project(tmp_path, echo("KIND_CPU", "KIND_GPU"))
    with pytest.raises(UserError) as caught:
        project.plan("own", project.environment("production"), allow_unpublished=True)
    [problem] = caught.value.problems
    assert str(problem) == (
        "triton/own/echo/config.pbtxt:6:26: an instance group needs a GPU, and ml.c5.xlarge has "
        "none [SW398]\n    Set `kind: KIND_CPU`, or leave `kind` out: Triton then takes what is "
        "there."
    )
    config = project.files["own"]
    config.write_text(CONFIG.replace("ml.c5.xlarge", "ml.g4dn.xlarge"), "utf-8")
    project.plan("own", project.environment("production"), allow_unpublished=True)


def _own_project(tmp_path: Path, files: dict[str, str]) -> Project:
    project = Project(write_project(tmp_path, {"own": CONFIG}))
    for path, content in files.items():
        file = project.root / "triton" / "own" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    return project


def test_a_plan_refuses_what_the_server_would_not_load(tmp_path):
    project = _own_project(
        tmp_path, {"echo/config.pbtxt": ECHO.replace("8", "-8"), "config.pbtxt": ""}
    )
    (project.root / "triton/own/echo/1").mkdir()
    with pytest.raises(UserError) as caught:
        project.plan("own", project.environment("production"), allow_unpublished=True)
    assert [str(problem).partition(": ")[0] for problem in caught.value.problems] == [
        "model_configs/own.yaml:8:3",
        "model_configs/own.yaml:8:3",
        "triton/own/echo/config.pbtxt:3:17",
    ]


@pytest.mark.parametrize(
    ("backend", "file", "needs_gpu"),
    [("onnxruntime", "model.onnx", False), ("tensorrt", "model.plan", True)],
)
def test_config_pbtxt_decides_whether_a_gpu_is_needed(tmp_path, backend, file, needs_gpu):
    text = ECHO.replace('"python"', f'"{backend}"')
    project = _own_project(tmp_path, {"echo/config.pbtxt": text, f"echo/1/{file}": "a"})
    # As `slipway init` writes it: without `backend`, whose default is of Slipway's own model.
    config = project.files["own"]
    config.write_text(CONFIG.replace("  backend: python\n", ""), "utf-8")
    try:
        project.plan("own", project.environment("production"), allow_unpublished=True)
        found = []
    except UserError as error:
        found = [problem.message for problem in error.problems]
    assert found == (
        ["the backend `tensorrt` needs a GPU, and ml.c5.xlarge has none"] if needs_gpu else []
    )


def test_a_plan_refuses_a_pointer_of_git_lfs(tmp_path):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    project = _own_project(tmp_path, {**echo(), "echo/weights.bin": pointer})
    with pytest.raises(UserError, match=r"weights\.bin` is a pointer of Git LFS"):
        project.plan("own", project.environment("production"), allow_unpublished=True)


def test_a_plan_warns_of_models_that_are_not_loaded(tmp_path):
    files = {**echo(), **echo(name="again")}
    project = _own_project(tmp_path, files)
    config = project.files["own"]
    config.write_text(CONFIG.replace("/own\n", "/own\n  default_model: echo\n"), "utf-8")
    plan = project.plan("own", project.environment("production"), allow_unpublished=True)
    assert "triton-unloaded-models" in {warning.code for warning in plan.warnings}


def test_a_plan_does_not_need_the_directory_yet(tmp_path):
    project = _own_project(tmp_path, {})
    project.plan("own", project.environment("production"), allow_unpublished=True)


# The text format: Google's reader, with a descriptor made of the same table, is the judge.


def _model_config():
    """Returns the class of ModelConfig, with names that say where each message lies."""
    file = FileDescriptorProto(name="own.proto", package="own", syntax="proto3")
    for name, values in enums().items():
        # In a message of its own, because names of values have the scope of their enumeration.
        enum = file.message_type.add(name=f"{name.replace('.', '_')}_").enum_type.add(name="Value")
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    for name, fields in messages().items():
        message = file.message_type.add(name=name.replace(".", "_"))
        for number, (field, kind) in enumerate(fields.items(), 1):
            made = message.field.add(name=field, number=number, label=3 if kind.repeated else 1)
            if kind.choice:
                if kind.choice not in [each.name for each in message.oneof_decl]:
                    message.oneof_decl.add(name=kind.choice)
                made.oneof_index = len(message.oneof_decl) - 1
            if kind.name in messages() or kind.name in enums():
                value = "" if kind.name in messages() else "_.Value"
                made.type_name = f".own.{kind.name.replace('.', '_')}{value}"
            else:
                made.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.name.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("own.ModelConfig"))


MODEL_CONFIG = _model_config()


@settings(deadline=None)
@given(
    texts=st.lists(st.text(max_size=20), max_size=4),
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
    flag=st.booleans(),
)
def test_what_google_writes_is_read(texts, numbers, flag):
    config = MODEL_CONFIG(name="".join(texts), max_batch_size=len(numbers))
    config.input.add(name="TEXT", dims=numbers, optional=flag)
    for text in texts:
        config.parameters.add(key=text).value.string_value = text
    for as_one_line in (True, False):
        for as_utf8 in (True, False):
            written = text_format.MessageToString(config, as_one_line=as_one_line, as_utf8=as_utf8)
            read = parse(written)
            assert read.text("name") == "".join(texts)
            [tensor] = read.messages("input")
            assert [int(scalar.text) for scalar in tensor.scalars("dims")] == numbers
            assert tensor.flag("optional") == flag
            assert [key for key, _ in read.entries("parameters")] == texts


_TOKENS = re.findall(
    r'"[^"]*"|\w+|\S', ECHO + PIPELINE.replace("platform", "parameters { } runtime")
)
_LISTS = ("[ ]", "[ 1 ]", "[ 'a' ]", "[ { } ]")
_OTHERS = (*"[]{}<>:,;", "-1", "0x1f", "017", "1.5", "true", "'a'", *_LISTS)


@settings(deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(_TOKENS) - 1), st.sampled_from((*_OTHERS, *_TOKENS, ""))),
        max_size=2,
    )
)
def test_a_changed_config_is_refused_exactly_when_google_refuses_it(changes):
    tokens = list(_TOKENS)
    for at, token in changes:
        tokens[at] = token
    text = " ".join(tokens)
    directory = Directory("own", (), {"config.pbtxt": len(text)}, {"config.pbtxt": text.encode()})
    _, _, problems = read_config(directory, "config.pbtxt", "26.05")
    assert bool(problems) != _google_reads(text), text


# Google's reader takes `\k`, with this warning of Python.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_page_says_what_googles_reader_would_miss():
    configs = [
        text
        for case in CASES.values()
        if check(case).problems
        for path, text in case.files.items()
        if path.endswith("config.pbtxt")
    ]
    ours = sum(len(check(case).problems) for case in CASES.values())
    googles = sum(not _google_reads(text) for text in configs)
    page = " ".join((ROOT / "docs/architecture.md").read_text("utf-8").split())
    assert f"It would report {googles} of the {ours} problems" in page


def _google_reads(text: str) -> bool:
    try:
        text_format.Parse(text, MODEL_CONFIG())
    except text_format.ParseError:
        return False
    return True


def test_the_back_ends_that_a_repository_needs_are_found() -> None:
    assert check(Case(echo())).backends == ["python"]
    own = {"own/config.pbtxt": 'backend: "own"\nmax_batch_size: 1\n', "own/1/model.own": "x"}
    assert check(Case({**own, "own/1/libtriton_own.so": "x"})).backends == []
    assert check(Case(own)).backends == ["own"]
