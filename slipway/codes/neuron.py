"""Codes of settings of the Neuron container."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.NEURON_DEVICE,
        "The type has no usable Neuron device",
        "The `neuron` container needs Inferentia or Trainium, with a known number of "
        "NeuronCores. It compiles for inf1, inf2 and trn1 only.",
        "Choose a type of these families, for example `ml.inf2.xlarge`.",
    ),
    Entry(
        Code.NEURON_FRAMEWORK,
        "The Neuron image is for another chip",
        "The images for inf1 (`framework: neuron`) and for later chips (`framework: neuronx`) "
        "have different runtimes.",
        "Set the `framework` for the instance type, or choose a type for the image.",
    ),
    Entry(
        Code.NEURON_DRIVER,
        "The host's Neuron driver is too old",
        "The Neuron runtime in the image needs a newer driver than SageMaker's newest host "
        "image has.",
        "Choose an image with an older Neuron SDK, for example 2.29.1.",
    ),
    Entry(
        Code.NEURON_ENCODER,
        "The container serves encoders only",
        "The `neuron` container computes one forward pass for each text. It does not generate "
        "text.",
        "Choose another container for a model that generates. For an encoder that is not "
        "listed, set `family: other`.",
    ),
    Entry(
        Code.NEURON_PIPELINE,
        "`pipeline_cores` cannot be used",
        "Only inf1 has the NeuronCore Pipeline. It serves low latency, and excludes data "
        "parallelism.",
        "Delete `pipeline_cores`, or set `objective: latency` on inf1.",
    ),
    Entry(
        Code.NEURON_CORES,
        "The instance has too few NeuronCores",
        "The workers, with the cores of each, need more NeuronCores than the instance type "
        "has. Workers never share a core.",
        "Lower `workers` or `pipeline_cores`, or delete them: Slipway then derives both.",
    ),
    Entry(
        Code.NEURON_POOL,
        "The instance types need different models",
        "All types of an endpoint share one model and one set of variables. Types with another "
        "number of NeuronCores, or of another family, need a different model or different "
        "variables.",
        "Name types of one family with as many NeuronCores.",
    ),
    Entry(
        Code.NEURON_BATCH,
        "The batch does not fit objective or queue",
        "`objective: latency` serves each request by itself on inf2 and Trainium. The queue "
        "must be as long as a batch.",
        "Delete `batch_size`, set `objective: throughput`, or raise `max_queue_length`.",
    ),
    Entry(
        Code.NEURON_LENGTHS,
        "The sequence lengths are not in order",
        "Each sequence length is a compiled graph. The lengths must ascend and end with "
        "`sequence_length`, the longest text.",
        "Write the list that the printed remedy shows.",
    ),
    Entry(
        Code.NEURON_FP32,
        "inf1 does not compute in fp32",
        "inf1 computes matrix products in bf16 or fp16, so nothing can be compiled in single "
        "precision.",
        "Set `dtype: bf16`. `fp16` has more digits and a smaller range.",
    ),
)
