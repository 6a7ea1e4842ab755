"""Names of special tokens. This module imports nothing, so the command line can use it in its help."""

from __future__ import annotations

END_OF_TEXT = "<|endoftext|>"

# The control tokens of the llm.c profile, ids 0 to 8.
CONTROL_TOKENS = (
    END_OF_TEXT,
    "<|padding|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|thought|>",
    "<|/thought|>",
)
