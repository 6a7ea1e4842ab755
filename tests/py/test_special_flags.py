"""Added tokens with lstrip, rstrip, single_word and normalized: found exactly where Hugging Face finds them."""

import json
import random
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from c_tokenizer import CTokenizer
from pipelines import DIGITS, LLAMA3, WITH_REGEX, WITHOUT_REGEX, sequence, split, splits
from reference import added_tokens as reference
from test_models import changed
from tokenizers import processors

import pybpe
from pybpe import _binding
from pybpe.analysis.comparison import compare
from pybpe.analysis.differences import differences, differences_on
from pybpe.cli import main
from pybpe.formats import byte_level
from pybpe.model.matching import Matching, matcher
from pybpe.reading import pieces
from pybpe.tokenizer.encoding import TextEncoder
from pybpe.tokens.verification import verify
from pybpe.viz.data import tokenizer_data

FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
TEXTS = [
    *("<m>", "<mask>", "<mask>>", "mask", "cd", "cda", "dab", "bcd", "_x", "x9", "9-", "<|end|>", "[x]", "||"),
    *("  ", "\n\n", " m", "m ", "ő", "x\u0301", "中", "\u3000", "--", "KK", "\u200d"),
]
PARTS = [
    *TEXTS,
    *(
        " ", "  ", "\t", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u202f",
        "\u3000",
    ),
    *("a", "b", "c", "d", "x", "_", "1", "٣", "½", "Ⅷ", "Ⓐ", "ß", "\u0301", "\u0903", "\u200c", "\u200b", "\ufeff"),
    *("<", ">", ".", "-", "'", "中文", "👍", "\U0001d7ce", "\u037e", "\u212a", "\u0338", "=", "\u203f", "ª"),
]  # fmt: skip


def added(text: str, **flags: Any) -> dict[str, Any]:
    return {"content": text, **dict.fromkeys(FLAGS, False), "special": True, **flags}


MERGES = ["Ġ Ġ", "Ġ <", "Ġ a", "a b", "> Ġ", "m a", "Ġ m", "s k", "Ċ Ċ"]


def file(
    tokens: Sequence[dict[str, Any]], pre_tokenizer: dict[str, Any] = WITH_REGEX, normalizer: str | None = None
) -> str:
    """Returns a tokenizer.json with a few merges, so that words matter."""
    vocab = {char: i for i, char in enumerate(byte_level.CHAR_TO_BYTE)}
    for text in [merge.replace(" ", "") for merge in MERGES] + [token["content"] for token in tokens]:
        vocab[text] = len(vocab)
    parts = {"normalizer": normalizer and {"type": normalizer}, "decoder": WITH_REGEX}
    data = json.loads(
        changed(pre_tokenizer, added_tokens=[token | {"id": vocab[token["content"]]} for token in tokens], **parts)
    )
    data["model"] |= {"vocab": vocab, "merges": MERGES}
    return json.dumps(data)


def random_tokens(rng: random.Random) -> list[dict[str, Any]]:
    names = rng.sample(TEXTS, rng.randint(1, 6))
    rate = rng.choice([0.1, 0.4, 0.8])
    return [added(name, **{flag: rng.random() < rate for flag in FLAGS}) for name in names]


def random_texts(rng: random.Random, names: Sequence[str], count: int) -> list[str]:
    parts = [*PARTS, *list(names) * 8, *[" "] * 8]
    return ["".join(rng.choices(parts, k=rng.randint(0, 24))) for _ in range(count)]


Case = tuple[str, pybpe.Tokenizer, tokenizers.Tokenizer, dict[str, reference.Token], list[str]]
PLAIN = [WITH_REGEX, sequence(DIGITS, WITH_REGEX)]
PREFIX = {**WITH_REGEX, "add_prefix_space": True}
BYTES_FIRST = {**WITHOUT_REGEX, "add_prefix_space": True}
PREFIXED = [
    PREFIX,
    sequence(PREFIX),
    sequence(PREFIX, DIGITS),
    sequence(BYTES_FIRST, split("Ġ", "MergedWithNext")),
    sequence(PREFIX, {**DIGITS, "individual_digits": False}, split("[0-9][0-9][0-9]")),
]


def cases(seed: int, count: int, normalizer: str | None = None, prefix: bool = False) -> list[Case]:
    """Returns random tokenizers that pybpe accepts, with texts. Few must be refused."""
    rng = random.Random(seed)
    found: list[Case] = []
    tried = 0
    while len(found) < count:
        tried += 1
        text = file(random_tokens(rng), rng.choice(PREFIXED if prefix else PLAIN), normalizer)
        theirs = tokenizers.Tokenizer.from_str(text)
        flags = {
            token["content"]: reference.Token(*(token[flag] for flag in FLAGS))
            for token in json.loads(text)["added_tokens"]
        }
        try:
            ours = pybpe.Tokenizer.from_hf(theirs)
        except pybpe.errors.FormatError as error:
            assert "begins with white space" in str(error) or "there is a normalizer" in str(error)
            continue
        assert ours.model.prefix_space == prefix
        found.append((text, ours, theirs, flags, random_texts(rng, list(flags), 30)))
    assert tried < (2 if normalizer is None else 12) * count
    return found


def test_the_reference_is_hugging_face() -> None:
    for file_text, ours, theirs, flags, texts in cases(1, 150):
        in_c = CTokenizer(file_text.encode())
        for text in texts:
            expected = theirs.encode(text, add_special_tokens=False).ids
            assert reference.encode(text, flags, ours.special_tokens, ours.encode_ordinary) == expected, (flags, text)
            assert in_c.encode(text) == expected, (flags, text)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("normalizer", [None, "NFC", "NFKC"])
def test_ids_and_offsets_are_those_of_hugging_face(normalizer: str | None, prefix: bool) -> None:
    kinds, again = set(), 0
    for file_text, ours, theirs, flags, texts in cases(2, 60, normalizer, prefix):
        texts += ["", " ", "a", "\u00a0a", "\n", "\u3000 x", "\u2000x", "é", "e\u0301 x"]
        encodings = theirs.encode_batch(texts, add_special_tokens=False)
        expected = [encoding.ids for encoding in encodings]
        assert ours.encode_batch(texts) == expected, flags
        if "MergedWithNext" not in file_text:  # of the pre_tokenizers, C does not know this one
            in_c = CTokenizer(file_text.encode())
            assert [in_c.encode(text) for text in texts] == expected, flags
        ids, rows = ours.encode_batch_to_numpy(texts, 2)
        assert [ids[a:b].tolist() for a, b in pairwise(rows)] == expected
        specials = set(ours.special_tokens.values())
        for text, encoding in zip(texts, encodings, strict=True):
            assert ours.encode(text) == encoding.ids == ours.encode_to_numpy(text).tolist(), (flags, text)
            assert ours.count(text) == len(encoding.ids)
            assert ours.decode(encoding.ids) == theirs.decode(encoding.ids, skip_special_tokens=False)
            again += ours.model.encodes_again(encoding.ids)
            if (normalizer is None or (prefix and normalizer == "NFC")) and ours.model.encodes_again(encoding.ids):
                assert ours.encode(ours.decode_bytes(encoding.ids)) == encoding.ids, (flags, text)
            spans = ours.encode_with_offsets(text)
            assert spans.ids == encoding.ids and all(a[1] == b[0] for a, b in pairwise(spans.byte_spans))
            if normalizer is None:
                kinds |= {ours.model.matching.get(name) for name in flags if ours.special_tokens[name] in encoding.ids}
                compared = specials if not prefix else set(encoding.ids)
                found = zip(encoding.ids, spans.char_spans, encoding.offsets, strict=True)
                assert all(ours_at == theirs_at for i, ours_at, theirs_at in found if i in compared), text
        assert ours.encode(texts[0], texts[1]) == theirs.encode(texts[0], texts[1], add_special_tokens=False).ids
        joined = "".join(texts)
        assert list(ours.encode_iterable(texts)) == theirs.encode(joined, add_special_tokens=False).ids
    assert again > 300 and (normalizer is not None or len(kinds) > 10)


NAMES = [f"[unused{i}]" for i in range(3)] + [" " * count for count in range(2, 25)]
PUBLISHED = {  # as the authors' files have them, or with add_prefix_space: added tokens, pre-tokenizer, normalizer
    "RoBERTa, BART, Longformer": (
        [*map(added, ["<s>", "<pad>", "</s>", "<unk>"]), added("<mask>", lstrip=True)], WITH_REGEX, None,
    ),
    "RoBERTa, saved again by transformers": (
        [
            *(added(text, normalized=True) for text in ("<s>", "<pad>", "</s>", "<unk>")),
            added("<mask>", lstrip=True),
        ],
        WITH_REGEX, None,
    ),
    "ModernBERT": (
        [
            *(added(text, normalized=True, special=False) for text in ["|||IP_ADDRESS|||", *NAMES]),
            *map(added, ["<|padding|>", "<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]"]),
            added("[MASK]", lstrip=True),
        ],
        WITH_REGEX, "NFC",
    ),
    "Phi-4": (
        [added(text, lstrip=True, rstrip=True) for text in ("<|endoftext|>", "<|dummy_0|>", "<|im_start|>")],
        splits(LLAMA3), None,
    ),
    "StarCoder2": (
        [*map(added, ["<|endoftext|>", "<fim_prefix>", "<repo_name>"])], sequence(DIGITS, WITH_REGEX), None,
    ),
    "GPT-2 with add_prefix_space": ([added("<|endoftext|>")], PREFIX, None),
    "Blenderbot": ([*map(added, ["<s>", "</s>"]), added("<mask>", lstrip=True)], PREFIX, None),
    "ModernBERT with add_prefix_space": (
        [*(added(text, normalized=True) for text in NAMES), added("[CLS]"), added("[MASK]", lstrip=True)],
        PREFIX, "NFC",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tokenizers(name: str) -> None:
    tokens, pre_tokenizer, normalizer = PUBLISHED[name]
    names = [token["content"] for token in tokens]
    theirs = tokenizers.Tokenizer.from_str(file(tokens, pre_tokenizer, normalizer))
    if "RoBERTa" in name:
        ids = ((text, theirs.token_to_id(text)) for text in ("</s>", "<s>"))
        theirs.post_processor = processors.RobertaProcessing(*ids, trim_offsets=True, add_prefix_space=False)
    ours = pybpe.Tokenizer.from_hf(theirs)
    texts = random_texts(random.Random(name), [*names[:3], *names[-4:]], 400)
    for text, encoding in zip(texts, theirs.encode_batch(texts), strict=True):
        assert ours.encode(text, add_special_tokens=True) == encoding.ids, text


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("normalizer", [None, "NFC"])
def test_pieces_of_any_size_give_the_ids_of_the_whole(normalizer: str | None, prefix: bool) -> None:
    """Cuts are forced as often as possible, for patterns with cuts at different places."""
    cuts = 0
    patterns = (None, "gpt2", "cl100k", r"[^\n]*\n|[^\n]+", r"\s+|\S+", r"(?:[^ ] )+|.|\n", r"(?bytes)[\xa0-\xff]")
    for _, ours, _, flags, texts in cases(3, 25, normalizer, prefix):
        for pattern in patterns:
            model = ours.model if pattern is None else pybpe.Tokenizer.from_hf(ours.to_hf(), pattern=pattern).model
            encoder = TextEncoder(model, model.to_vocab())
            for sample in [*texts[:6], "".join(texts)]:
                data = sample.encode()
                ends = [*dict.fromkeys(encoder.cut(data, at) for at in range(1, len(data))), len(data)]
                parts = [data[a:b] for a, b in pairwise([0, *ends])]
                found = [encoder.encode(part, encoder.specials) for part in parts]
                assert sum(found, []) == encoder.encode(data, encoder.specials), (flags, pattern, parts)
                cuts += len(parts)
    assert cuts > 3000


@pytest.mark.slow
@pytest.mark.parametrize("pre_tokenizer", [WITH_REGEX, PREFIX])
def test_long_texts_with_threads(pre_tokenizer: dict[str, Any]) -> None:
    tokens = [added("<mask>", lstrip=True), added("<r>", rstrip=True), added("word", single_word=True)]
    tokens += [added("   ", normalized=True), added("<n>", lstrip=True, normalized=True)]
    theirs = tokenizers.Tokenizer.from_str(file(tokens, pre_tokenizer))
    ours = pybpe.Tokenizer.from_hf(theirs)
    texts = random_texts(random.Random(4), ["<mask>", "<r>", "word", "   ", "<n>", "word", "lorem ipsum", "中文"], 300)
    block = f" start {''.join(texts)} end"  # Hugging Face needs quadratic time for a long text
    start, rest = (theirs.encode(text, add_special_tokens=False).ids for text in ("x", block))
    long, expected = "x" + block * 200, start + rest * 200
    assert len(long.encode()) > pieces.PIECE_BYTES
    assert ours.encode(long) == expected and ours.encode(long.encode()) == expected
    assert ours.encode_to_numpy(long, num_threads=4).tolist() == expected
    assert ours.encode_batch([long, "x <mask>"], 2) == [expected, ours.encode("x <mask>")]
    assert ours.count(long) == len(expected)


def test_bytes_that_are_not_utf8() -> None:
    """They are neither white space nor part of a word, so the matches around them are those of any such character."""
    rng = random.Random(5)
    for _, ours, _, flags, texts in cases(6, 60):
        ids = ours.special_tokens
        for text in texts:
            data = bytearray(text.replace("\ufffd", "").encode())
            for _ in range(rng.randint(1, 3)):
                at = rng.randint(0, len(data))
                data[at:at] = rng.choice([b"\xff", b"\xc3", b"\xe4\xb8", b"\x80", b"\xf0\x9f\x98"])
            shown = bytes(data).decode("utf-8", "surrogateescape")
            ends = [0, *accumulate(len(char.encode("utf-8", "surrogateescape")) for char in shown)]
            expected = [(ends[start], ends[end], ids[name]) for start, end, name in reference.matches(shown, flags)]
            assert ours._encoder.specials is not None
            assert list(ours._encoder.specials.find_all(bytes(data))) == expected, (flags, data)
            assert [i for i in ours.encode(bytes(data)) if i in ids.values()] == [i for _, _, i in expected]


# ----------------------------------------------------------------------------------------------------
# Files


def test_saved_files_keep_the_flags(tmp_path: Path) -> None:
    for _, ours, theirs, flags, texts in cases(7, 40):
        ours.save(tmp_path / "t.json")
        again = pybpe.Tokenizer.from_file(tmp_path / "t.json")
        saved = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
        assert again == ours and again.model.matching == ours.model.matching
        ours.save_pretrained(tmp_path / "folder")
        folder = pybpe.Tokenizer.from_file(tmp_path / "folder")
        for text in texts:
            expected = theirs.encode(text, add_special_tokens=False).ids
            assert saved.encode(text, add_special_tokens=False).ids == expected == again.encode(text), flags
            assert ours.to_hf().encode(text, add_special_tokens=False).ids == expected == folder.encode(text)


def flagged(**flags: bool) -> pybpe.Tokenizer:
    return pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(file([added("<mask>", **flags)])))


def test_white_space_that_two_tokens_would_take_is_refused(tmp_path: Path) -> None:
    """Hugging Face encodes some characters twice then."""
    path = tmp_path / "t.json"
    path.write_text(file([added("<r>", rstrip=True), added("\u3000x")]))
    with pytest.raises(
        pybpe.errors.FormatError, match=r"t.json: .*'<r>' has rstrip on, and '\\u3000x' begins with white space"
    ):
        pybpe.Tokenizer.from_file(path)
    path.write_text(file([added("<r>", rstrip=True), added(" x", normalized=True)]))
    assert pybpe.Tokenizer.from_file(path).encode("<r>  x") == pybpe.Tokenizer.from_file(path).encode("<r>x")
    with pytest.raises(pybpe.errors.ArgumentError, match="begins with white space, and special token 0 has rstrip"):
        matcher(["<r>", "\u2003"], {"<r>": Matching(rstrip=True)})
    with pytest.raises(pybpe.errors.ArgumentError, match="unknown flags"):
        _binding.Specials({"a": 0}, {"a": 16})


def test_a_folder_with_other_flags_is_refused(tmp_path: Path) -> None:
    """transformers would follow tokenizer_config.json."""
    tok = flagged(lstrip=True)
    tok.save_pretrained(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    facts = json.loads(config.read_text())
    entry = added("<mask>", lstrip=True)
    facts["added_tokens_decoder"] = {str(tok.special_tokens["<mask>"]): entry}
    config.write_text(json.dumps(facts))
    assert pybpe.Tokenizer.from_file(tmp_path) == tok
    for flag in FLAGS:
        facts["added_tokens_decoder"] = {str(tok.special_tokens["<mask>"]): {**entry, flag: not entry[flag]}}
        config.write_text(json.dumps(facts))
        with pytest.raises(pybpe.errors.FormatError, match=f"'<mask>' has {flag} .* make them equal"):
            pybpe.Tokenizer.from_file(tmp_path)


def test_disallowed_tokens_are_those_that_match() -> None:
    tok = pybpe.Tokenizer.from_hf(
        tokenizers.Tokenizer.from_str(file([added("word", single_word=True, lstrip=True), added("<a>")]))
    )
    assert tok.encode("words <a>", disallowed_special={"word"}) == tok.encode("words <a>")
    with pytest.raises(pybpe.errors.ArgumentError, match="special token 'word' at byte 1"):
        tok.encode("a \t word b", disallowed_special={"word"})
    assert tok.encode("a word", allowed_special=()) == tok.encode_ordinary("a word")
    assert tok.encode("a  word<a>", allowed_special={"word"}) == [*tok.encode("a  word"), *tok.encode_ordinary("<a>")]


# ----------------------------------------------------------------------------------------------------
# Corpora


def of_tokens(*tokens: dict[str, Any]) -> tuple[pybpe.Tokenizer, tokenizers.Tokenizer]:
    theirs = tokenizers.Tokenizer.from_str(file(tokens))
    return pybpe.Tokenizer.from_hf(theirs), theirs


def ids_in(folder: Path) -> list[int]:
    return np.fromfile(folder / "train.bin", dtype=np.uint16).tolist()


EOT = "<|endoftext|>"


@pytest.mark.parametrize("rules", [{}, {"lstrip": True, "rstrip": True}, {"single_word": True}])
def test_documents_with_marks(rules: dict[str, bool], tmp_path: Path) -> None:
    """However documents are divided, each is encoded as a separate text."""
    tok, theirs = of_tokens(
        added(EOT, **rules), added("<mask>", lstrip=True), added("<r>", rstrip=True), added("word", single_word=True)
    )
    rng = random.Random(8)
    texts = random_texts(rng, ["<mask>", "<r>", "word", " "], 200)
    texts = [line for text in texts if (line := text.replace("\n", "").replace("\r", "").strip("\r\n"))]
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    mark = tok.special_tokens[EOT]
    joined = [i for ids in expected for i in [mark, *ids]]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    options: dict[str, Any] = {"format": "raw", "splits": (1,), "eot": "prepend", "progress": False}
    manifest = pybpe.binarize(tok, path, tmp_path / "lines", documents="line", **options)
    assert ids_in(tmp_path / "lines") == joined and manifest.split_documents("train") == len(texts)
    assert verify(tmp_path / "lines", tok)[1] == []
    marked = tmp_path / "marked.txt"
    marked.write_text(EOT.join(texts), encoding="utf-8")
    if rules:
        with pytest.raises(pybpe.errors.ArgumentError, match="the end of text '<|endoftext|>' has .*strip|single_word"):
            pybpe.binarize(tok, marked, tmp_path / "marked", **options)
    else:
        pybpe.binarize(tok, marked, tmp_path / "marked", **options)
        assert ids_in(tmp_path / "marked") == joined
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pybpe.binarize(tok, records, tmp_path / "records", **options)
    assert ids_in(tmp_path / "records") == [i for text in texts for i in [mark, *tok.encode_ordinary(text)]]


def test_training_that_extends_counts_without_the_white_space_that_tokens_take(tmp_path: Path) -> None:
    tok, _ = of_tokens(added("<mask>", lstrip=True, rstrip=True))
    text = "x <mask>  ab ab \n\n\n <mask> cd cd\n\n\n"
    path = tmp_path / "t.txt"
    path.write_text(text)
    bare = tokenizers.Tokenizer.from_str(file([added("<mask>")]))
    for inputs in (str(path), iter([text])):
        longer = tok.extend(inputs=inputs, vocab_size=tok.vocab_size + 3, min_frequency=1, progress=False)
        assert longer.model.matching == tok.model.matching and longer.encode("a <mask>") == tok.encode("a <mask>")
        plain = pybpe.Tokenizer.from_hf(bare).extend(
            inputs=iter(["x<mask>ab ab<mask>cd cd\n\n\n"]), vocab_size=tok.vocab_size + 3, progress=False
        )
        assert longer.merges == plain.merges
    with pytest.raises(pybpe.errors.ArgumentError, match="special tokens with flags, such as '<mask>'"):
        tok.extend(counts=pybpe.count_words(iter([text]), special_tokens=["<mask>"]), vocab_size=tok.vocab_size + 3)


def test_programs_that_show_a_tokenizer(tmp_path: Path) -> None:
    tok, _ = of_tokens(added("<mask>", lstrip=True), added("<see>", rstrip=True, special=False))
    plain, _ = of_tokens(added("<mask>"), added("<see>", special=False))
    facts = differences(plain, tok)
    assert not facts["equal"] and facts["settings"]["matching"] == [{}, {"<mask>": ["lstrip"], "<see>": ["rstrip"]}]
    text = "ab <mask> <see>  ab\n" * 50
    assert differences_on(plain, tok, text.encode())["different"] is None
    found = compare({"plain": plain, "tok": tok}, {"text": iter([text])}, progress=False)
    assert found is not None
    page = tokenizer_data("tok", tok, text.encode())
    assert page["rewrites"] and page["pattern"]["why"] == "its special token '<mask>' has lstrip on"
    assert tokenizer_data("plain", plain, text.encode())["pattern"]["why"] is None


def test_inspect_says_that_it_counts_without_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = pybpe.train(iter(["a b c"]), vocab_size=258, special_tokens=["<mask>"])
    plain.save(tmp_path / "plain.json")
    data = json.loads((tmp_path / "plain.json").read_text())
    data["added_tokens"][0]["lstrip"] = True
    (tmp_path / "flags.json").write_text(json.dumps(data))
    (tmp_path / "text.txt").write_text("a <mask> b")
    for name, count in (("plain", 0), ("flags", 1)):
        main(["inspect", str(tmp_path / f"{name}.json"), str(tmp_path / "text.txt"), "--quiet"])
        assert capsys.readouterr().err.count("counted without add_prefix_space and the flags") == count
