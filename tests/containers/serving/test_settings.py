from pathlib import Path

import pytest

from containers.serving.settings import EnvironmentReader, ServingSettings, SettingsError
from containers.tensorrt.settings import GenerationSettings


def read(environ):
    reader = EnvironmentReader(environ)
    settings = ServingSettings.read(reader), GenerationSettings.read(reader)
    reader.finish()
    return settings


def problems(environ):
    with pytest.raises(SettingsError) as caught:
        read(environ)
    return caught.value.problems


def test_an_empty_environment_gives_the_defaults():
    serving, generation = read({"PATH": "/bin", "SAGEMAKER_REGION": "eu-west-1"})
    assert (serving, generation) == (ServingSettings(), GenerationSettings())
    assert (serving.port, serving.bind_address) == (8080, "127.0.0.1")


def test_every_variable_is_read():
    given = {
        "port": ("SAGEMAKER_BIND_TO_PORT", "9000", 9000),
        "bind_address": ("SLIPWAY_BIND_ADDRESS", "::1", "::1"),
        "model_dir": ("SM_MODEL_DIR", "/models/a", Path("/models/a")),
        "max_batch_size": ("SLIPWAY_MAX_BATCH_SIZE", "4", 4),
        "max_batch_delay_milliseconds": ("SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS", "0", 0),
        "max_queue_length": ("SLIPWAY_MAX_QUEUE_LENGTH", "16", 16),
        "request_timeout_seconds": ("SLIPWAY_REQUEST_TIMEOUT_SECONDS", "3600", 3600),
        "max_request_bytes": ("SLIPWAY_MAX_REQUEST_BYTES", "1000", 1000),
        "drain_timeout_seconds": ("SLIPWAY_DRAIN_TIMEOUT_SECONDS", "10", 10),
        "log_level": ("SLIPWAY_LOG_LEVEL", "debug", "DEBUG"),
        "max_buffered_bytes": ("SLIPWAY_MAX_BUFFERED_BYTES", "2000", 2000),
        "metrics_port": ("SLIPWAY_METRICS_PORT", "9001", 9001),
        "serves_docs": ("SLIPWAY_DOCS", "true", True),
        "max_input_tokens": ("SLIPWAY_MAX_INPUT_TOKENS", "32", 32),
        "max_new_tokens": ("SLIPWAY_MAX_NEW_TOKENS", "10", 10),
        "default_new_tokens": ("SLIPWAY_DEFAULT_NEW_TOKENS", "5", 5),
        "intra_op_threads": ("SLIPWAY_INTRA_OP_THREADS", "2", 2),
    }
    serving, generation = read({variable: text for variable, text, _ in given.values()})
    found = vars(serving) | vars(generation)
    assert {name: found[name] for name in given} == {
        name: value for name, (_, _, value) in given.items()
    }
    assert given.keys() >= vars(serving).keys()


def test_all_problems_come_at_once():
    assert problems(
        {
            "SAGEMAKER_BIND_TO_PORT": "70000",
            "SLIPWAY_MAX_BATCH_SIZE": "many",
            "SLIPWAY_DRAIN_TIMEOUT_SECONDS": "30",
            "SLIPWAY_LOG_LEVEL": "loud",
            "SM_MODEL_DIR": " ",
            "SLIPWAY_MAX_NEW_TOKENS": "0",
            "SLIPWAY_MAX_BATCHSIZE": "4",
            "SLIPWAY_DOCS": "yes",
            "SLIPWAY_XYZ": "",
        }
    ) == (
        "SAGEMAKER_BIND_TO_PORT='70000' is not a whole number from 0 to 65535",
        "SM_MODEL_DIR is empty: unset it for the default, /opt/ml/model",
        "SLIPWAY_MAX_BATCH_SIZE='many' is not a whole number from 1 to 1024",
        "SLIPWAY_DRAIN_TIMEOUT_SECONDS='30' is not a whole number from 1 to 29",
        "SLIPWAY_LOG_LEVEL='loud' is not one of DEBUG, INFO, WARNING, ERROR",
        "SLIPWAY_DOCS='yes' is not one of true, false",
        "SLIPWAY_MAX_NEW_TOKENS='0' is not a whole number from 1 to 1000000",
        "SLIPWAY_MAX_BATCHSIZE is not a variable of this container "
        "(did you mean SLIPWAY_MAX_BATCH_SIZE?)",
        "SLIPWAY_XYZ is not a variable of this container",
    )


@pytest.mark.parametrize("value", ["", " 8", "1_0", "+8", "8.0", "\u0668", "9" * 5000])
def test_only_plain_digits_are_a_whole_number(value):
    [problem] = problems({"SLIPWAY_MAX_BATCH_SIZE": value})
    assert problem.endswith("is not a whole number from 1 to 1024")


def test_rules_that_join_variables():
    assert problems(
        {"SLIPWAY_MAX_QUEUE_LENGTH": "4", "SLIPWAY_MAX_NEW_TOKENS": "8"}
        | {"SLIPWAY_DEFAULT_NEW_TOKENS": "9", "SLIPWAY_MAX_BUFFERED_BYTES": "1000000"}
        | {"SLIPWAY_METRICS_PORT": "8080"}
    ) == (
        "SLIPWAY_MAX_QUEUE_LENGTH=4 is below SLIPWAY_MAX_BATCH_SIZE=8: no batch could fill",
        "SLIPWAY_MAX_BUFFERED_BYTES=1000000 is below SLIPWAY_MAX_REQUEST_BYTES=6291456: the "
        "largest requests would never get in",
        "SLIPWAY_METRICS_PORT=8080 is the port of the requests (SAGEMAKER_BIND_TO_PORT)",
        "SLIPWAY_DEFAULT_NEW_TOKENS=9 exceeds SLIPWAY_MAX_NEW_TOKENS=8",
    )


def test_the_default_of_new_tokens_follows_a_lower_maximum():
    assert read({"SLIPWAY_MAX_NEW_TOKENS": "8"})[1].default_new_tokens == 8
