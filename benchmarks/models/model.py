"""llm.c's GPT-2 in PyTorch, from a checkpoint of llm.c: a faster stand-in for train_gpt2.c on CPUs.

The parameters have the names and shapes of the checkpoint: llmc_compat/checkpoint.py. The rows of wte that only pad
the vocabulary are left out, because they do not affect the loss. `make check-models` compares the losses with llm.c's.
Source: llm.c, train_gpt2.c (gpt2_forward, gpt2_update) and train_gpt2.cu (gpt2_update).
"""

from __future__ import annotations

import os

import torch
from torch.nn import functional

from llmc_compat.checkpoint import read_checkpoint


class GPT2(torch.nn.Module):
    """A GPT-2 with the weights of a checkpoint. `config` has its shape."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.config, tensors = read_checkpoint(path)
        tensors["wte"] = tensors["wte"][: self.config.vocab_size]
        self.weights = torch.nn.ParameterDict({name: torch.from_numpy(x.copy()) for name, x in tensors.items()})

    def losses(self, inputs: torch.Tensor, targets: torch.Tensor, counted: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the cross-entropies in nats, one-dimensional, of ids of shape (B, T): at all positions, or at those
        that the mask `counted` of that shape selects."""
        w = self.weights
        x = functional.embedding(inputs, w["wte"]) + w["wpe"][: inputs.shape[1]]
        for layer in range(self.config.num_layers):
            block = {name: tensor[layer] for name, tensor in w.items() if name not in ("wte", "wpe", "lnfw", "lnfb")}
            x = self._block(x, block)
        x = _norm(x, w["lnfw"], w["lnfb"])
        x, targets = (x.flatten(0, 1), targets.flatten()) if counted is None else (x[counted], targets[counted])
        return functional.cross_entropy(functional.linear(x, w["wte"]), targets, reduction="none")

    def _block(self, x: torch.Tensor, w: dict[str, torch.Tensor]) -> torch.Tensor:
        batch, length, channels = x.shape
        heads = self.config.num_heads
        qkv = functional.linear(_norm(x, w["ln1w"], w["ln1b"]), w["qkvw"], w["qkvb"])
        q, k, v = qkv.view(batch, length, 3, heads, channels // heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(batch, length, channels)
        x = x + functional.linear(mixed, w["attprojw"], w["attprojb"])
        hidden = functional.linear(_norm(x, w["ln2w"], w["ln2b"]), w["fcw"], w["fcb"])
        return x + functional.linear(functional.gelu(hidden, approximate="tanh"), w["fcprojw"], w["fcprojb"])


def _norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (x.shape[-1],), weight, bias, eps=1e-5)


def adamw(model: GPT2, beta2: float, weight_decay: float) -> torch.optim.AdamW:
    """Returns llm.c's optimizer. As in train_gpt2.cu, only matrices decay. (train_gpt2.c: beta2 0.999 and no decay.)"""
    matrices = {"wte", "wpe", "qkvw", "attprojw", "fcw", "fcprojw"}
    groups = [
        {"params": [w for name, w in model.weights.items() if (name in matrices) == decays], "weight_decay": decay}
        for decays, decay in ((True, weight_decay), (False, 0.0))
    ]
    return torch.optim.AdamW(groups, betas=(0.9, beta2), eps=1e-8, fused=True)
