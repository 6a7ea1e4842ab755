"""Converts llm.c checkpoints to GGUF files of a GPT-2, for llama.cpp, with the vocabulary of the tokenizer.

GGUF stores matrices as llm.c does, (out, in), and the tensors of each layer by themselves. wte has V rows, not Vp: one
for each token. It also is the output layer. Of a bfloat16 checkpoint, the matrices stay bfloat16. Vectors and wpe
become float32, as llama.cpp requires. Sources: llama.cpp, conversion/gpt2.py, conversion/base.py (prepare_tensors),
src/models/gpt2.cpp.
"""

from __future__ import annotations

from math import prod

from pybpe import Tokenizer, _binding
from pybpe.formats import export
from pybpe.formats.gguf import header, new_writer, padding
from pybpe.support.call_paths import check_paths

from .checkpoint import Checkpoint, from_file_type
from .gpt2_config import GPT2Config, StoredTensor

# llm.c's name -> llama.cpp's name.
_OF_THE_MODEL = {"wte": "token_embd.weight", "wpe": "position_embd.weight",
                 "lnfw": "output_norm.weight", "lnfb": "output_norm.bias"}  # fmt: skip
_OF_A_LAYER = {"ln1": "attn_norm", "qkv": "attn_qkv", "attproj": "attn_output",
               "ln2": "ffn_norm", "fc": "ffn_up", "fcproj": "ffn_down"}  # fmt: skip


def _item_bytes(tensor: StoredTensor, dtype: str) -> int:
    """Returns the size of a weight of the file, for a checkpoint of this type."""
    return 2 if dtype == "bf16" and len(tensor.shape) > 1 and tensor.source != "wpe" else 4


def checkpoint_to_gguf(source: _binding.PathLike, tokenizer: Tokenizer, out: _binding.PathLike) -> GPT2Config:
    """Writes a GGUF file that llama.cpp runs, atomically. One tensor is in memory at a time.

    Args:
        source: an llm.c checkpoint.
        tokenizer: the one it was trained with.
        out: the file, usually *.gguf.

    Returns:
        The shape of the model.

    Raises:
        ArgumentError: the tokenizer and the model differ in their number of tokens, or `out` is `source`. FileError,
            FormatError: `source` cannot be read. UnsupportedError: llama.cpp would not give the tokenizer's ids; the
            message says why. MissingExtraError: gguf is not installed.
    """
    check_paths({"out": [_binding.path_text(out)]}, {"the model": [_binding.path_text(source)]})
    with Checkpoint(source, warns=True) as model:
        config = model.config
        model.check_vocab_size(tokenizer.vocab_size)
        writer = new_writer(export.held(tokenizer.model, "gguf"))
        from gguf import GGMLQuantizationType, LlamaFileType

        writer.add_context_length(config.max_seq_len)
        writer.add_embedding_length(config.channels)
        writer.add_block_count(config.num_layers)
        writer.add_feed_forward_length(4 * config.channels)
        writer.add_head_count(config.num_heads)
        writer.add_layer_norm_eps(1e-5)
        writer.add_file_type(LlamaFileType.MOSTLY_BF16 if model.dtype == "bf16" else LlamaFileType.ALL_F32)
        tensors = list(config.parts(_OF_THE_MODEL, "blk.{}.", _OF_A_LAYER))
        for tensor in tensors:
            size = _item_bytes(tensor, model.dtype)
            kind = GGMLQuantizationType.F32 if size == 4 else GGMLQuantizationType.BF16
            writer.add_tensor_info(tensor.name, tensor.shape, None, prod(tensor.shape) * size, kind)
        with _binding.Output(out) as output:
            output.write(header(writer))
            for tensor in tensors:
                rows = model.raw_rows(tensor.source, tensor.start, tensor.stop)
                data = rows if _item_bytes(tensor, model.dtype) == rows.itemsize else from_file_type(rows, model.dtype)
                output.write(data)
                output.write(padding(data.nbytes))
        return config
