"""What a job that quantised measured: refused where too many tokens differ from fp32."""

import json
from typing import Any

import pytest

from slipway.errors import UserError
from slipway.planning.families import deployment_of
from slipway.publishing.families import PACKAGING
from tests.support.projects import LOCAL, PRODUCTION, model_config

JOB = "compile-tiny-0123456789ab"
PREFIX = f"compile/{JOB}/output/model/"


@pytest.fixture
def inspect(access):
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


def test_the_bound_is_nine_tenths_of_the_tokens(inspect):
    assert inspect(report(432)).equal_tokens == 432
    with pytest.raises(UserError) as refused:
        inspect(report(431))
    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == ("SW872", ("serving", "dtype"))
    assert problem.message == (
        "in int8 the model chooses 431 of 480 tokens as in fp32, and a logit differs by up to "
        "1.25; 90% of the tokens are needed"
    )
    assert problem.remedy == "Write `dtype: fp32`, and publish again."


def test_an_encoders_outputs_differ_by_at_most_a_fifth(inspect):
    inspect('{"texts": 8, "relative_difference": 0.2}')
    with pytest.raises(UserError) as refused:
        inspect('{"texts": 8, "relative_difference": 0.201}')
    (problem,) = refused.value.problems
    assert (problem.code, problem.message) == (
        "SW872",
        "in int8 the outputs for 8 texts differ by 20.1% from fp32; at most 20% is accepted",
    )


def test_other_precisions_have_no_report():
    deployment = deployment_of(model_config(), PRODUCTION)
    assert PACKAGING["tensorrt"].inspection(deployment) is None
