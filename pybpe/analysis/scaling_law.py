"""How large a vocabulary should be, after Tao et al. 2024, "Scaling Laws with Vocabulary" (arXiv 2407.13623).

The paper trains models of 33 million to 1.13 billion parameters without embeddings, with vocabularies of 4,000 to
96,000 tokens, on English. The numbers below are from the authors' program, optimal_Nv_predict.py and utils.py in
sail-sg/scaling-with-vocab. The compute of training is 6 * (parameters + embeddings) * tokens, where embeddings
are one matrix: vocab_size * channels.
"""

from __future__ import annotations

import math

SMALLEST, LARGEST = 33_000_000, 1_130_000_000  # parameters without embeddings of the models in the paper


def power_law(parameters: float, channels: int) -> float:
    """Returns the vocabulary size of approach 2: the embeddings grow as parameters^0.84, from the best vocabulary of
    the smallest model."""
    return 3_145_728 * math.pow(parameters / SMALLEST, 0.8353974035228025) / channels


def tokens_per_character(vocab_size: float) -> float:
    """Returns the compression of the tokenizers of the paper."""
    log = math.log(min(vocab_size, 200_000))
    return 0.00639222 * log**2 - 0.15811069 * log + 1.20470122


def loss(parameters: float, embeddings: float, tokens: float) -> float:
    """Returns the loss of approach 3, in nats per token, less the entropy of the tokens' frequencies. The difference
    makes it comparable between vocabularies."""
    of_parameters = 1.8313851559554126 / math.pow(parameters / 1e6, 0.44660634152009615)
    of_embeddings = 0.19584238398665638 / math.pow(embeddings / 1e6, 0.6707374679896795)
    of_tokens = 2.1241123120064955 / math.pow(tokens / 1e9, 0.44660634152009615)
    return of_parameters + of_embeddings + of_tokens - 5.5327846803337435
