"""Jinja templates with which transformers turns a chat into text, chosen by a tokenizer's special tokens."""

from __future__ import annotations

from collections.abc import Container

# The control tokens of the llm.c profile, in which a role is one token. llmc_compat/chat.py writes the same as token
# ids, and documents the format.
_ROLES = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>")
# {% generation %} marks the text of the assistant, for the return_assistant_tokens_mask of transformers.
# It is written without dashes, because programs that do not support it remove exactly this spelling.
CONTROL_TOKENS_TEMPLATE = (
    "<|endoftext|>"
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{- raise_exception('unknown role: ' + message['role']) -}}"
    "{%- endif -%}"
    "{{- '<|im_start|><|' + message['role'] + '|>' -}}"
    "{%- if message['role'] == 'assistant' -%}"
    "{% generation %}"
    "{%- if message['thought'] is defined and message['thought'] is not none -%}"
    "{{- '<|thought|>' + message['thought'] + '<|/thought|>' -}}"
    "{%- endif -%}"
    "{{- message['content'] + '<|im_end|>' -}}"
    "{% endgeneration %}"
    "{%- else -%}"
    "{%- if message['thought'] is defined and message['thought'] is not none -%}"
    "{{- raise_exception('only the assistant has a thought') -}}"
    "{%- endif -%}"
    "{{- message['content'] + '<|im_end|>' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|im_start|><|assistant|>' -}}"
    "{%- endif -%}"
)

# ChatML, for tokenizers that have its two tokens. https://github.com/openai/openai-python/blob/v0.28.1/chatml.md
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}"
    "{{ message['content'] + '<|im_end|>' }}"
    "{% endif %}"
    "{{ '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def default_template(specials: Container[str]) -> str | None:
    """Returns the template for a tokenizer with these special tokens: that of the llm.c profile, or ChatML, or None."""
    if all(token in specials for token in _ROLES):
        return CONTROL_TOKENS_TEMPLATE
    return CHATML if "<|im_start|>" in specials and "<|im_end|>" in specials else None
