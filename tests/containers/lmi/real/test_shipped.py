"""The LMI configs that ship, on the real server of the version that each names.

The package is what `slipway publish` sends, unchanged, the weights are copied from S3, and the
server goes as far as this machine goes: to the GPUs that it counts, or to the engine's library.
With what a CPU forces changed, and a stand-in where the library needs CUDA, flan-t5-xxl, flan-ul2
and gpt-j-6b answer in test_shipped_texts.py, qwen2-7b-trtllm in test_shipped_tensorrt_llm.py and
the packages for vLLM in test_shipped_vllm.py.
"""

import pytest

from slipway.config.sections.serving.lmi import LmiServing
from slipway.embedded_aws.hosting.families.lmi.djl_serving import tag_environment
from slipway.project import Project
from tests.containers.lmi.real import servers

pytestmark = pytest.mark.djl_serving

PROJECT = Project(servers.ROOT)
# What ends the server here, and would not in the image on the instance.
LACKS = {
    "flan-t5-xxl": "GPU devices are not enough to run 4 partitions.",
    "flan-ul2": "GPU devices are not enough to run 4 partitions.",
    "gpt-j-6b": "GPU devices are not enough to run 1 partitions.",
    # The server has a script of the image's make an engine before it starts a handler.
    "qwen2-7b-trtllm": "can't open file '/opt/djl/partition/trt_llm_partition.py'",
    "qwen2-7b-two-gpus": "No module named 'vllm'",
    "qwen2-7b-vllm": "No module named 'vllm'",
}
# Their packages differ from qwen2-7b-vllm's in options, and bge-reranker's in the handler.
NOT_LOADED = {
    "bge-reranker", "gemma-3-4b", "gpt-oss-20b", "qwen3-30b-a3b-fp8", "qwen3-8b",
    "qwen3-embedding", "qwen3-vl-8b",
}  # fmt: skip


def lmi_configs():
    configs = {name: PROJECT.config(name, "ci").config for name in PROJECT.files}
    return {
        name: config for name, config in configs.items() if isinstance(config.serving, LmiServing)
    }


def test_every_shipped_config_is_loaded_here_or_named():
    assert set(lmi_configs()) == LACKS.keys() | NOT_LOADED


@pytest.mark.parametrize("name", LACKS)
def test_a_shipped_package_loads_up_to_what_this_machine_lacks(name, aws_url, tmp_path_factory):
    config = lmi_configs()[name]
    home = servers.home_of(config.serving.version)
    files = servers.package_for(config)
    directory = tmp_path_factory.mktemp("djl")
    image = tag_environment(servers.image_tag(config))
    with servers.started(home, directory, files, aws_url=aws_url, **image) as server:
        log = server.wait_for_end()
    assert server.has_copied(servers.WEIGHTS_DIGEST)
    assert LACKS[name] in log
    # Nothing before it was wrong.
    assert "NumberFormatException" not in log
    assert "Deep learning engine not found" not in log
    assert "Download model failed" not in log
