"""Names of special tokens. This module imports nothing, so the command line can use it in its help."""

from __future__ import annotations

from collections.abc import Container

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


# ----------------------------------------------------------------------------------------------------
# Jinja templates that turn a chat into text in transformers, chosen by a tokenizer's special tokens.

# The control tokens of the llm.c profile, where a role is one token. llmc_compat/chat.py writes the same as token
# ids, and documents the format.
_ROLES = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>")
# Neither template has the {% generation %} of transformers, which other readers of Jinja refuse. So transformers has no
# assistant_masks for them. ChatFormat.loss_mask gives the masks of the llm.c profile.
CONTROL_TOKENS_TEMPLATE = (
    "<|endoftext|>"
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{- raise_exception('unknown role: ' + message['role']) -}}"
    "{%- endif -%}"
    "{{- '<|im_start|><|' + message['role'] + '|>' -}}"
    "{%- if message['thought'] is defined and message['thought'] is not none -%}"
    "{%- if message['role'] != 'assistant' -%}"
    "{{- raise_exception('only the assistant has a thought') -}}"
    "{%- endif -%}"
    "{{- '<|thought|>' + message['thought'] + '<|/thought|>' -}}"
    "{%- endif -%}"
    "{{- message['content'] + '<|im_end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|im_start|><|assistant|>' -}}"
    "{%- endif -%}"
)

# ChatML, for tokenizers that have its two tokens. https://github.com/openai/openai-python/blob/v0.28.1/chatml.md
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def default_template(specials: Container[str]) -> str | None:
    """Returns the template for a tokenizer with these special tokens: the llm.c profile's, or ChatML, or None."""
    if all(token in specials for token in _ROLES):
        return CONTROL_TOKENS_TEMPLATE
    return CHATML if "<|im_start|>" in specials and "<|im_end|>" in specials else None
