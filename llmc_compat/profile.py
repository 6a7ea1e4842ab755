"""The control tokens of the llm.c profile: ids 0 to 8, in this order."""

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|padding|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|thought|>",
    "<|/thought|>",
)
