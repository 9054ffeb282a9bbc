"""Codes of TensorRT, Triton and compiling."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.TENSORRT_FAMILY,
        "The TensorRT container serves GPT-2 only",
        "Slipway's TensorRT container compiles and serves models of the family `gpt2`. It refuses "
        "any other checkpoint when the compile job reads it.",
        "Use `container: neuron` for an encoder such as BERT, and `container: lmi` for another "
        "model that generates text.",
    ),
    Entry(
        Code.NVIDIA_GPU,
        "The container needs an NVIDIA GPU",
        "The TensorRT container, and some back ends of Triton, run on NVIDIA GPUs only.",
        "Choose a type with an NVIDIA GPU, for example `ml.g4dn.xlarge` or `ml.g5.xlarge`.",
    ),
    Entry(
        Code.TRITON_REPOSITORY,
        "The Triton model repository does not fit",
        "Slipway has a model of its own for some families only. A repository of your own is "
        "published as it is. With several models, `default_model` says which one answers.",
        "Set `serving.repository`, `serving.default_model` or `artifacts` as the printed remedy "
        "says.",
    ),
    Entry(
        Code.ANSWER_LENGTHS,
        "The default answer is longer than allowed",
        "`default_new_tokens` applies to requests without a limit of their own. It cannot "
        "exceed `max_new_tokens`.",
        "Lower `default_new_tokens`, or raise `max_new_tokens`.",
    ),
    Entry(
        Code.NOT_COMPILED,
        "The weights are not compiled",
        "The TensorRT and Neuron containers load compiled models only. The config has weights, "
        "and nothing compiles them.",
        "Add `artifacts.compile` with an instance type, or set `artifacts.release` to a "
        "compiled model.",
    ),
    Entry(
        Code.CUSTOM_COMPILE,
        "Slipway cannot compile for a custom container",
        "A custom image has its own way to compile, which Slipway does not know. Its weights "
        "are published as they are.",
        "Delete `artifacts.compile`.",
    ),
    Entry(
        Code.COMPILE_INSTANCE,
        "The compile job needs another instance type",
        "An engine, or partitioned weights, must be built on the GPU that serves them. Neuron "
        "compiles on a CPU, and no training job runs on inf1 or inf2.",
        "Set `artifacts.compile.instance` to the type in the printed remedy.",
    ),
    Entry(
        Code.COMPILED_FOR_ANOTHER,
        "The release was compiled for other hardware",
        "A compiled model runs only on the compute capability, or the Neuron family, that it "
        "was compiled for.",
        "Compile the model again for the endpoint's type, or choose a type with the release's "
        "target.",
    ),
    Entry(
        Code.POOL_OF_TARGETS,
        "The types need differently compiled models",
        "All types of an endpoint load the same engine or the same partitioned weights. These "
        "work with one compute capability.",
        "Name types with the same GPU only, or make a second model config for the other GPU.",
    ),
    Entry(
        Code.UNKNOWN_COMPUTE_CAPABILITY,
        "The GPU's compute capability is not known",
        "Slipway's table of instance types has no source for the compute capability of this "
        "GPU. A compiled model needs it as its target.",
        "Choose another instance type, or use the other remedy in the message.",
    ),
    Entry(
        Code.TRITON_LAYOUT,
        "The Triton repository has a wrong layout",
        "Each model is a directory with config.pbtxt and version directories, such as `MODEL/1`, "
        "which have the file that the backend loads. AWS's image counts every directory as a "
        "model. Files that config.pbtxt names lie in the model's directory. None is empty or a "
        "pointer of Git LFS.",
        "Move, rename or add the file or directory that the message names.",
    ),
    Entry(
        Code.TRITON_MODEL,
        "Triton would not load or serve the model",
        "A setting in config.pbtxt has a value that Triton or AWS's image refuses, or two settings "
        "exclude each other. The container would not become healthy.",
        "Correct the setting at the place in the message.",
    ),
    Entry(
        Code.TRITON_ENSEMBLE,
        "The ensemble's steps do not fit together",
        "A step calls a model or tensor that does not exist, or a tensor has no origin or no use. "
        "Triton would not load the ensemble.",
        "Correct `input_map`, `output_map` or `model_name` at the place in the message.",
    ),
)
