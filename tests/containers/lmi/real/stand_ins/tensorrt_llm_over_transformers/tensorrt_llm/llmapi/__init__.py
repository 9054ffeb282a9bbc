"""The interface that the handler imports."""

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.llmapi.llm_args import CalibConfig, KvCacheConfig, QuantAlgo, QuantConfig
from tensorrt_llm.llmapi.sampling_params import SamplingParams

__all__ = ["LLM", "CalibConfig", "KvCacheConfig", "QuantAlgo", "QuantConfig", "SamplingParams"]
