"""Sections of configs for NeuronCores."""

from __future__ import annotations

NEURON = {
    "container": "neuron",
    "framework": "neuron",
    "task": "question-answering",
    "objective": "throughput",
    "sequence_length": 128,
}
NEURONX = NEURON | {"framework": "neuronx"}
LATENCY = {"objective": "latency"}
