"""The interface that the handler imports."""

from tensorrt_llm.llmapi.llm import LLM, KvCacheConfig, SamplingParams

# Imported by the handler, for engines that it does not build.
CalibConfig = QuantAlgo = QuantConfig = object

__all__ = ["LLM", "CalibConfig", "KvCacheConfig", "QuantAlgo", "QuantConfig", "SamplingParams"]
