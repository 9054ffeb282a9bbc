"""What a partition job wrote: taken where it is what will be served, refused where it is not."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from slipway.errors import UserError
from slipway.planning.families import situation_of
from slipway.planning.families.lmi.partitioning import job_settings
from slipway.publishing.families import PACKAGING
from slipway.publishing.families.lmi.parts import differences, parts_inspection, written_properties
from tests.support.partitioned import config
from tests.support.projects import LOCAL, PRODUCTION, messages, model_config
from tests.support.situations import lmi

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


def test_what_deepspeed_wrote(refused):
    assert refused(output()) == []


def test_what_fastertransformer_wrote(refused):
    written = "engine=FasterTransformer\noption.tensor_parallel_degree=4\noption.dtype=fp16\n"
    files = {"serving.properties": written.encode(), "4-gpu/verify": b"any-fp16-4-1"}
    assert refused(files, "djl-fastertransformer", "0.22.1") == []


def test_what_the_first_of_tensorrt_llm_wrote_is_its_own_affair(refused):
    assert refused({"tensorrt_llm/1/model.engine": b"any"}, "djl-tensorrtllm", "0.28.0") == []


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
    situation = lmi(given, PRODUCTION)
    found = situation.asked_partitioning
    adds = found.loading
    published = situation.properties("s3://bucket/")
    written = job_settings(found) | adds
    assert list(differences(written, published, found.method.writes)) == []
    assert adds.items() <= published.items()


def test_the_command_ends_well_without_having_done_anything(refused):
    assert refused({}) == [f"the training job {JOB} ended well and wrote nothing"]
    # Not even of TensorRT-LLM.
    assert refused({}, "djl-tensorrtllm", "0.28.0") == [
        f"the training job {JOB} ended well and wrote nothing"
    ]


def test_files_that_are_missing(refused):
    files = output(**{"serving.properties": None, "ds_inference_config.json": None})
    assert refused(files) == [
        f"the training job {JOB} ended well, and what it wrote lacks ds_inference_config.json, "
        "serving.properties"
    ]


def test_shards_that_are_missing(refused):
    files = {"serving.properties": b"engine=FasterTransformer\n", "config.json": b"{}"}
    assert refused(files, "djl-fastertransformer", "0.24.0") == [
        f"the training job {JOB} ended well, and what it wrote lacks *-gpu/verify"
    ]


def test_parts_of_another_precision_and_without_the_list(refused):
    text = DEEPSPEED.replace("fp16", "fp32").replace("option.checkpoint", "option.other")
    assert refused(output(**{"serving.properties": text.encode()})) == [
        f"the training job {JOB} wrote serving.properties with nothing for option.checkpoint, and "
        "the one that is published has `ds_inference_config.json`",
        f"the training job {JOB} wrote serving.properties with `fp32` for option.dtype, and the "
        "one that is published has `fp16`",
    ]


def index(**changes: Any) -> dict[str, bytes]:
    return output(**{"ds_inference_config.json": json.dumps(INDEX | changes).encode()})


def test_a_list_that_names_a_directory_of_the_job(refused):
    assert refused(index(base_dir="/opt/ml/model")) == [
        f"the training job {JOB} wrote ds_inference_config.json with the directory "
        "`/opt/ml/model`, in which the server would look for the parts"
    ]


def test_a_list_for_another_degree(refused):
    assert refused(index(tp_size=2)) == [
        f"the training job {JOB} wrote ds_inference_config.json for 2 GPUs, and the parts are "
        "served on 4"
    ]


def test_a_list_of_parts_that_are_not_there(refused):
    assert refused(output(**{"tp_03_07.pt": None, "non-tp.pt": None})) == [
        f"the training job {JOB} wrote ds_inference_config.json with parts that are not there: "
        "non-tp.pt, tp_03_07.pt"
    ]


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


def test_other_containers_output_is_not_looked_at():
    situation = situation_of(model_config(), PRODUCTION)
    assert PACKAGING["tensorrt"].inspection(situation) is None
