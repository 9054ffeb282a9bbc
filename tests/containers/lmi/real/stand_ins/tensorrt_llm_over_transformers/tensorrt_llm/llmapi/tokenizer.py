"""The handler names the type of tokenizers."""

from __future__ import annotations

import transformers

TokenizerBase = transformers.PreTrainedTokenizerBase
