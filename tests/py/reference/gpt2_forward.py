"""GPT-2's forward pass over an llm.c checkpoint, in float64, as slow and plain as the definition.

Reads the file by itself, so that it checks llmc_compat.checkpoint as well. Radford et al., "Language Models are
Unsupervised Multitask Learners", 2019; llm.c, train_gpt2.c (gpt2_forward).
"""

from math import prod
from pathlib import Path

import numpy


def load(path: Path) -> tuple[dict[str, int], dict[str, numpy.ndarray]]:
    """Returns the header's sizes by llm.c's names, and the tensors as float64."""
    data = path.read_bytes()
    header = numpy.frombuffer(data, dtype="<i4", count=256)
    assert header[0] == 20240326 and header[1] in (3, 5)
    sizes = dict(zip(("maxT", "V", "L", "NH", "C", "Vp"), header[2:8].tolist()))
    L, C = sizes["L"], sizes["C"]
    shapes = {
        **{"wte": (sizes["Vp"], C), "wpe": (sizes["maxT"], C), "ln1w": (L, C), "ln1b": (L, C)},
        **{"qkvw": (L, 3 * C, C), "qkvb": (L, 3 * C), "attprojw": (L, C, C), "attprojb": (L, C)},
        **{"ln2w": (L, C), "ln2b": (L, C), "fcw": (L, 4 * C, C), "fcb": (L, 4 * C)},
        **{"fcprojw": (L, C, 4 * C), "fcprojb": (L, C), "lnfw": (C,), "lnfb": (C,)},
    }
    if header[1] == 3:
        weights = numpy.frombuffer(data, dtype="<f4", offset=1024)
    else:  # bfloat16: the upper halves of float32
        weights = (numpy.frombuffer(data, dtype="<u2", offset=1024).astype("<u4") << 16).view("<f4")
    ends = numpy.cumsum([prod(shape) for shape in shapes.values()])
    assert ends[-1] == len(weights)
    parts = numpy.split(weights.astype(float), ends[:-1])
    return sizes, {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts)}


def logits(path: Path, ids: list[int]) -> numpy.ndarray:
    """Returns the logits after each of the ids: (len(ids), V)."""
    sizes, t = load(path)
    x = t["wte"][ids] + t["wpe"][: len(ids)]
    for i in range(sizes["L"]):
        normed = _layer_norm(x, t["ln1w"][i], t["ln1b"][i])
        mixed = _attention(normed @ t["qkvw"][i].T + t["qkvb"][i], sizes["NH"])
        x = x + mixed @ t["attprojw"][i].T + t["attprojb"][i]
        normed = _layer_norm(x, t["ln2w"][i], t["ln2b"][i])
        x = x + _gelu(normed @ t["fcw"][i].T + t["fcb"][i]) @ t["fcprojw"][i].T + t["fcprojb"][i]
    return _layer_norm(x, t["lnfw"], t["lnfb"]) @ t["wte"][: sizes["V"]].T


def losses(path: Path, ids: list[int], targets: list[int]) -> numpy.ndarray:
    """Returns the cross-entropy at each position, in nats."""
    z = logits(path, ids)
    z -= z.max(axis=1, keepdims=True)
    return numpy.log(numpy.exp(z).sum(axis=1)) - z[numpy.arange(len(ids)), targets]


def _layer_norm(x: numpy.ndarray, weight: numpy.ndarray, bias: numpy.ndarray) -> numpy.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias


def _gelu(x: numpy.ndarray) -> numpy.ndarray:
    """Returns the tanh approximation of GELU."""
    return 0.5 * x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3)))


def _attention(qkv: numpy.ndarray, heads: int) -> numpy.ndarray:
    """Computes causal attention, one head and one position at a time: (T, 3C) to (T, C)."""
    T, C3 = qkv.shape
    size = C3 // 3 // heads
    q, k, v = (part.reshape(T, heads, size) for part in numpy.split(qkv, 3, axis=1))
    out = numpy.empty((T, heads, size))
    for head in range(heads):
        for t in range(T):
            scores = k[: t + 1, head] @ q[t, head] / numpy.sqrt(size)
            weights = numpy.exp(scores - scores.max())
            out[t, head] = weights / weights.sum() @ v[: t + 1, head]
    return out.reshape(T, heads * size)
