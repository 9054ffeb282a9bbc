"""Configs on NeuronCores, images for them, and the advice about a config."""

from typing import Any

from slipway.planning.advice import Advice
from slipway.planning.families import deployment_of
from tests.support.projects import LOCAL, model_config

AWS = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
TORCHSERVE = f"{AWS}/pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04"
TORCHSERVE_X = f"{AWS}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.31.1-ubuntu24.04"
MULTI_MODEL_SERVER = f"{AWS}/huggingface-pytorch-inference-neuron:1.10.2"
SDK_2_30 = f"{AWS}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
SDK_2_29 = f"{AWS}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"
TOOLKIT = f"{AWS}/huggingface-pytorch-inference-neuronx:2.8.0"
OWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
BERT = {"family": "bert", "parameters": 110_000_000}


def neuron(**more: Any) -> dict[str, Any]:
    return {"model": BERT, "serving": NEURON | more}


def neuronx(**more: Any) -> dict[str, Any]:
    return {"model": BERT, "serving": NEURONX | more}


def custom(image: str, **environment: str) -> dict[str, Any]:
    return {"serving": {"container": "custom", "image_uri": image, "environment": environment}}


def pool(*names: str) -> dict[str, Any]:
    return {"endpoint": {"instances": list(names)}}


def release(target: str) -> dict[str, Any]:
    return {"artifacts": {"release": {"path": "build/bert", "target": target}}}


def warnings(say: Advice, **sections: Any) -> list[tuple[str, str]]:
    deployment = deployment_of(model_config(**sections), LOCAL)
    return [(item.code, item.message) for item in say(deployment)]


NEURON = {
    "container": "neuron",
    "framework": "neuron",
    "task": "question-answering",
    "objective": "throughput",
    "sequence_length": 128,
}
NEURONX = NEURON | {"framework": "neuronx"}
LATENCY = {"objective": "latency"}
