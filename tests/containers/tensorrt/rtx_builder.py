"""NVIDIA's own builder in the place of TensorRT's; it needs no GPU to build.

The bindings of TensorRT for RTX stand in for `tensorrt`: the same names, parser and type rules;
engines of its own, told their GPU instead of finding it, and a timing cache that holds nothing.
"""

import contextlib
import importlib
import sys

import pytest

from tests.support.groups import load

_MODULE = "containers.tensorrt.compile.engine_builder"


@contextlib.contextmanager
def rtx_engine_builder():
    """Our builder's module, imported anew with NVIDIA's bindings in the place of `tensorrt`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tensorrt", load("tensorrt_rtx_bindings", group="builder"))
        patch.delitem(sys.modules, _MODULE, raising=False)
        try:
            yield importlib.import_module(_MODULE)
        finally:
            del sys.modules[_MODULE]


def tensors(network, kind):
    """Type and shape of each `input` or `output`; -1 is a size that is known at run time."""
    count = getattr(network, f"num_{kind}s")
    found = [getattr(network, f"get_{kind}")(number) for number in range(count)]
    return {tensor.name: (tensor.dtype, tuple(tensor.shape)) for tensor in found}


def output_types(network, layer_type=None):
    """The types of what the layers put out, of one type of layer or of all."""
    layers = [network.get_layer(number) for number in range(network.num_layers)]
    chosen = [each for each in layers if layer_type in (None, each.type)]
    return {each.get_output(i).dtype for each in chosen for i in range(each.num_outputs)}


@contextlib.contextmanager
def building_for(architecture):
    """Tells the builder its GPU ("SM86"), which TensorRT's finds."""
    rtx = load("tensorrt_rtx_bindings", group="builder")
    create = rtx.Builder.create_builder_config

    def create_for(builder):
        config = create(builder)
        config.num_compute_capabilities = 1
        config.set_compute_capability(rtx.ComputeCapability.__members__[architecture], 0)
        return config

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rtx.Builder, "create_builder_config", create_for)
        yield
