"""Sections of configs for NeuronCores."""

NEURON = {
    "container": "neuron",
    "framework": "neuron",
    "task": "question-answering",
    "objective": "throughput",
    "sequence_length": 128,
}
NEURONX = NEURON | {"framework": "neuronx"}
LATENCY = {"objective": "latency"}
