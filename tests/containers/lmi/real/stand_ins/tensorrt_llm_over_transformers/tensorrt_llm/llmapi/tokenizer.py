"""The handler names the type of tokenizers."""

import transformers

TokenizerBase = transformers.PreTrainedTokenizerBase
