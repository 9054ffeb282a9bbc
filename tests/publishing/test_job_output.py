"""What a job wrote: taken where it is what will be served, refused where it is not.

A job that partitions wrote parts, and one that quantised measured how far int8 is from fp32.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from slipway.errors import UserError
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi.partitioning import job_settings
from slipway.publishing.families import PACKAGING
from slipway.publishing.families.lmi.parts import differences, parts_inspection, written_properties
from tests.support.deployments import lmi
from tests.support.partitioned import config
from tests.support.projects import LOCAL, PRODUCTION, messages, model_config

JOB = "compile-tiny-0123456789ab"
PREFIX = f"compile/{JOB}/output/model/"
# As partition.py of 0.27.0 writes it, in its order.
DEEPSPEED = """\
option.parallel_loading=True
option.checkpoint=ds_inference_config.json
engine=DeepSpeed
option.tensor_parallel_degree=4
option.dtype=fp16
option.task=text-generation
"""
PARTS = [f"tp_{rank:02}_{part:02}.pt" for part in range(8) for rank in range(4)]
INDEX: dict[str, Any] = {
    "type": "ds_model",
    "checkpoints": {"non_tp": ["non-tp.pt"], "tp": PARTS},
    "version": 1.0,
    "parallelization": "tp",
    "tp_size": 4,
    "dtype": "float16",
}


def output(**changes: bytes | None) -> dict[str, bytes]:
    files: dict[str, bytes | None] = {
        "config.json": b"{}",
        "serving.properties": DEEPSPEED.encode(),
        "ds_inference_config.json": json.dumps(INDEX).encode(),
        "non-tp.pt": b"rest",
        **dict.fromkeys(PARTS, b"part"),
        **changes,
    }
    return {name: content for name, content in files.items() if content is not None}


@pytest.fixture
def refused(access):
    """Returns what is said of a job's output; nothing where it is taken."""

    def refused(
        files: Mapping[str, bytes], framework: str = "djl-deepspeed", version: str = "0.27.0"
    ) -> list[str]:
        client = access.client("s3")
        for name, content in files.items():
            client.put_object(Bucket=LOCAL.artifact_bucket, Key=f"{PREFIX}{name}", Body=content)
        inspect = parts_inspection(lmi(config(framework, version), PRODUCTION))
        assert inspect is not None
        try:
            inspect(client, JOB, f"s3://{LOCAL.artifact_bucket}/{PREFIX}")
        except UserError as caught:
            error = caught
        else:
            return []
        assert {problem.field for problem in error.problems} == {("artifacts", "compile")}
        assert {problem.remedy for problem in error.problems} == {
            f"Its log says more: /aws/sagemaker/TrainingJobs, streams {JOB}/. Without `compile` "
            "the weights are split when they are loaded."
        }
        return messages(error)

    return refused


FASTER = "engine=FasterTransformer\noption.tensor_parallel_degree=4\noption.dtype=fp16\n"


@pytest.mark.parametrize(
    ("files", "image"),
    [
        (output(), ()),
        (
            {"serving.properties": FASTER.encode(), "4-gpu/verify": b"any-fp16-4-1"},
            ("djl-fastertransformer", "0.22.1"),
        ),
        # What the first versions of TensorRT-LLM write is their own affair.
        ({"tensorrt_llm/1/model.engine": b"any"}, ("djl-tensorrtllm", "0.28.0")),
    ],
)
def test_what_the_command_wrote_is_taken(refused, files, image):
    assert refused(files, *image) == []


@pytest.mark.parametrize(
    ("framework", "version"),
    [
        *(("djl-fastertransformer", version) for version in ("0.22.1", "0.23.0", "0.24.0")),
        *(("djl-deepspeed", version) for version in ("0.22.1", "0.23.0", "0.24.0", "0.25.0")),
        *(("djl-tensorrtllm", version) for version in ("0.25.0", "0.29.0", "0.33.0")),
    ],
)
def test_what_the_command_is_told_and_adds_is_what_is_published(framework, version):
    given = config(framework, version)
    deployment = lmi(given, PRODUCTION)
    found = deployment.asked_partitioning
    adds = found.loading
    published = deployment.properties("s3://bucket/")
    written = job_settings(found) | adds
    assert list(differences(written, published, found.method.writes)) == []
    assert adds.items() <= published.items()


def index(**changes: Any) -> dict[str, bytes]:
    return output(**{"ds_inference_config.json": json.dumps(INDEX | changes).encode()})


OTHER = DEEPSPEED.replace("fp16", "fp32").replace("option.checkpoint", "option.other")
INDEX_FILE, PROPERTIES = "ds_inference_config.json", "serving.properties"


@pytest.mark.parametrize(
    ("files", "image", "said"),
    [
        ({}, (), ["ended well and wrote nothing"]),
        ({}, ("djl-tensorrtllm", "0.28.0"), ["ended well and wrote nothing"]),
        (output(**{PROPERTIES: None, INDEX_FILE: None}), (),
         [f"ended well, and what it wrote lacks {INDEX_FILE}, {PROPERTIES}"]),
        ({PROPERTIES: b"engine=FasterTransformer\n", "config.json": b"{}"},
         ("djl-fastertransformer", "0.24.0"),
         ["ended well, and what it wrote lacks *-gpu/verify"]),
        (output(**{PROPERTIES: OTHER.encode()}), (),
         [f"wrote {PROPERTIES} with nothing for option.checkpoint, and the one that is published "
          f"has `{INDEX_FILE}`",
          f"wrote {PROPERTIES} with `fp32` for option.dtype, and the one that is published has "
          "`fp16`"]),
        (index(base_dir="/opt/ml/model"), (),
         [f"wrote {INDEX_FILE} with the directory `/opt/ml/model`, in which the server would look "
          "for the parts"]),
        (index(tp_size=2), (),
         [f"wrote {INDEX_FILE} for 2 GPUs, and the parts are served on 4"]),
        (output(**{"tp_03_07.pt": None, "non-tp.pt": None}), (),
         [f"wrote {INDEX_FILE} with parts that are not there: non-tp.pt, tp_03_07.pt"]),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(refused, files, image, said):
    assert refused(files, *image) == [f"the training job {JOB} {each}" for each in said]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"{", "JSONDecodeError: Expecting property name"),
        (b"{}", "KeyError: 'checkpoints'"),
        (b"[]", "TypeError: list indices must be integers"),
    ],
)
def test_a_list_that_is_none(refused, text, error):
    (message,) = refused(output(**{"ds_inference_config.json": text}))
    start = f"the training job {JOB} wrote ds_inference_config.json, which is no list of parts: "
    assert message.startswith(start + error)


def test_what_the_command_writes_is_read_as_it_writes_it():
    assert written_properties("# made\n\nengine=Any\n option.a = b=c \noption.b=\n") == {
        "engine": "Any",
        "option.a": "b=c",
        "option.b": "",
    }
    assert list(differences({"a": "True"}, {"a": "true"}, ["a"])) == []


@pytest.fixture
def inspect_int8(access):
    """Returns what is found in a job's report."""

    def inspect(report: str) -> Any:
        config = model_config(
            serving={"container": "tensorrt", "dtype": "int8", "max_input_tokens": 8,
                     "max_new_tokens": 8, "default_new_tokens": 8},
            endpoint={"instances": ["ml.c7i.2xlarge"]},
        )  # fmt: skip
        found = PACKAGING["tensorrt"].inspection(deployment_of(config, PRODUCTION))
        assert found is not None
        client, bucket = access.client("s3"), LOCAL.artifact_bucket
        client.put_object(Bucket=bucket, Key=f"{PREFIX}accuracy.json", Body=report.encode())
        return found(client, JOB, f"s3://{bucket}/{PREFIX}")

    return inspect


def report(equal_tokens: int) -> str:
    return json.dumps(
        {"tokens": 480, "equal_tokens": equal_tokens, "largest_logit_difference": 1.25}
    )


def test_the_bound_is_nine_tenths_of_the_tokens(inspect_int8):
    assert inspect_int8(report(432)).equal_tokens == 432
    with pytest.raises(UserError) as refused:
        inspect_int8(report(431))
    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == ("SW872", ("serving", "dtype"))
    assert problem.message == (
        "in int8 the model chooses 431 of 480 tokens as in fp32, and a logit differs by up to "
        "1.25; 90% of the tokens are needed"
    )
    assert problem.remedy == "Write `dtype: fp32`, and publish again."


def test_an_encoders_outputs_differ_by_at_most_a_fifth(inspect_int8):
    inspect_int8('{"texts": 8, "relative_difference": 0.2}')
    with pytest.raises(UserError) as refused:
        inspect_int8('{"texts": 8, "relative_difference": 0.201}')
    (problem,) = refused.value.problems
    assert (problem.code, problem.message) == (
        "SW872",
        "in int8 the outputs for 8 texts differ by 20.1% from fp32; at most 20% is accepted",
    )


def test_other_precisions_have_no_report():
    deployment = deployment_of(model_config(), PRODUCTION)
    assert PACKAGING["tensorrt"].inspection(deployment) is None
