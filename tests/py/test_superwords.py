"""Superwords (two stages of training) and whole characters, against their definitions and Hugging Face."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reference import superwords as reference
from texts import chinese, english, mixed

import pybpe
from pybpe.cli import main


def random_text(rng: random.Random, alphabet: str, words: int) -> str:
    """Few letters, so that many pairs are equally frequent and merges overlap."""
    made = ["".join(rng.choices(alphabet, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 6))]
    joints = [" ", " ", " ", " ", ", ", ": ", "  ", "\n", "...", "\n\n", " 12 ", "1984", "-", "  \n", " (", ")."]
    return "".join(rng.choice(made) + rng.choice(joints) for _ in range(words))


# ------------------------------------------------------------------------------------------------------
# Superwords


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    texts = [random_text(rng, "ab" if seed % 2 else "aab é", rng.randint(5, 60)) for _ in range(rng.randint(1, 6))]
    size, transition = 256 + rng.randint(5, 60), rng.choice([0.0, 0.9, 0.95, 0.99])
    tok = pybpe.train(iter(texts), vocab_size=size, superwords=True, transition=transition)
    first = max(256, round(transition * size)) - 256
    assert tok.merges == reference.train(texts, first, size - 256)


def test_a_smaller_vocabulary_is_a_prefix() -> None:
    """How many merges are to come decides which pairs are kept: that changes no merge."""
    text, first = english()[:400_000], 1500
    largest = pybpe.train(iter([text]), vocab_size=2600, superwords=True, transition=first / 2600).merges
    for size in (1510, 1700, 2100):
        tok = pybpe.train(iter([text]), vocab_size=size, superwords=True, transition=first / size)
        assert tok.merges == largest[: size - 256]


def same_as_hugging_face(tok: pybpe.Tokenizer, samples: list[str]) -> None:
    theirs = tok.to_hf()
    for sample in samples:
        expected = theirs.encode(sample, add_special_tokens=False).ids
        assert tok.encode_ordinary(sample) == tok.encode_to_numpy(sample).tolist() == expected, sample


def test_hugging_face_gives_the_same_ids() -> None:
    text, rng = mixed() + english()[:150_000], random.Random(1)
    tok = pybpe.train(iter([text]), vocab_size=3000, superwords=True, tie_break="huggingface")
    samples = [text, "", "  ", "a  b\n\n c", "x: y :  z", *(random_text(rng, "abé中 ", 40) for _ in range(200))]
    same_as_hugging_face(tok, samples)


@pytest.mark.parametrize("seed", range(12))
def test_it_does_so_if_merges_overlap(seed: int) -> None:
    """Encoding applies the merges in two stages."""
    rng = random.Random(seed)
    alphabet = rng.choice(["ab", "aab é", "abcde", "a中文,", "हिन्दी"])
    text = random_text(rng, alphabet, 200)
    tok = pybpe.train(iter([text]), vocab_size=256 + rng.randint(5, 120), superwords=True, transition=0.9)
    same_as_hugging_face(tok, [text, *(random_text(rng, alphabet, 30) for _ in range(20))])


def test_a_long_sentence_takes_linear_time_and_gives_the_ids_of_its_parts() -> None:
    """One chunk of 3 MB, without a place where it may be cut."""
    text = english()[:150_000]
    tok = pybpe.train(iter([text]), vocab_size=2000, superwords=True)
    sentence = " of the people and" * 200_000
    first = tok.encode(sentence[:1800])
    assert tok.encode_to_numpy(sentence).tolist()[: len(first) - 20] == first[:-20]
    assert tok.decode(tok.encode(sentence)) == sentence


def test_saved_files_carry_superwords(tmp_path: Path) -> None:
    text = english()[:150_000]
    tok = pybpe.train(iter([text]), vocab_size=2000, superwords=True, special_tokens=["<|endoftext|>"])
    ids = tok.encode(text)
    assert len(ids) < len(pybpe.train(iter([text]), vocab_size=2001).encode(text))
    assert tok.decode(ids) == text
    for name in ("tok.json", "tok.bin"):
        tok.save(tmp_path / name)
        assert pybpe.Tokenizer.from_file(tmp_path / name).encode(text) == ids


def corpus_files(tmp_path: Path) -> list[Path]:
    text = english()
    paths = [tmp_path / "a.txt", tmp_path / "b.jsonl"]
    paths[0].write_text(text[:200_000], encoding="utf-8")
    records = [text[i : i + 700] for i in range(200_000, 300_000, 700)]
    paths[1].write_text("".join(json.dumps({"text": t}) + "\n" for t in records), encoding="utf-8")
    return paths


def test_workers_executors_and_memory_limits_change_nothing(tmp_path: Path) -> None:
    paths = corpus_files(tmp_path)
    arguments = {"vocab_size": 900, "superwords": True, "special_tokens": ["the"]}
    expected = pybpe.train(paths, workers=1, **arguments).merges
    assert pybpe.train(paths, workers=3, **arguments).merges == expected
    assert pybpe.train(paths, memory_limit=1 << 24, **arguments).merges == expected
    with ThreadPoolExecutor(2) as pool:
        assert pybpe.train(paths, executor=pool, **arguments).merges == expected
    sample = {"max_bytes": 100_000, "seed": 7}
    one, three = (pybpe.train(paths, workers=workers, **sample, **arguments).merges for workers in (1, 3))
    assert one == three


def test_a_base_gets_superwords() -> None:
    text = english()[:100_000]
    base = pybpe.train(iter([text]), vocab_size=700, special_tokens=["<|endoftext|>"])
    tok = pybpe.train(iter([text]), vocab_size=800, superwords=True, base=base)
    assert all(tok.model.vocab[i] == token for i, token in base.model.vocab.items())
    assert tok.merges[: len(base.merges)] == base.merges
    assert any(b" " in tok.model.vocab[i].strip() for i in range(700, 800))
    # a tokenizer with superwords keeps their rules when it is extended
    for given in ({}, {"superwords": True}):
        more = pybpe.train(iter(["one two three four five six seven " * 90]), vocab_size=900, base=tok, **given)
        assert all(reference.is_superword(more.model.vocab[i]) for i in range(800, more.vocab_size))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"superwords": 1}, "superwords must be"),
        ({"superwords": True, "transition": 1.0}, "transition must be"),
        ({"superwords": True, "transition": -0.1}, "transition must be"),
        ({"superwords": True, "transition": float("nan")}, "transition must be"),
        ({"superwords": True, "transition": "0.8"}, "transition must be"),
        ({"superwords": True, "transition": True}, "transition must be"),
        ({"transition": 0.8}, "needs superwords"),
        ({"superwords": True, "digits": "3-from-right"}, "from the right"),
        ({"whole_characters": "yes"}, "whole_characters must be"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        pybpe.train(iter(["a"]), vocab_size=300, **arguments)


def test_counts_of_words_are_refused() -> None:
    counts = pybpe.count_words(iter(["a b c"]))
    for given in (counts, {"a": 3}, {}):
        with pytest.raises(pybpe.errors.ArgumentError, match="superwords cross words"):
            pybpe.train(counts=given, vocab_size=300, superwords=True)


@pytest.mark.filterwarnings("ignore:the pattern")
def test_a_custom_pattern_and_one_that_does_not_compile() -> None:
    text = english()[:20_000]
    plain = pybpe.train(iter([text]), vocab_size=600, superwords=True, pattern=r" ?\p{L}+|\s+|[^\s\p{L}]+")
    slow = pybpe.train(iter([text]), vocab_size=600, superwords=True, pattern=r" ?\p{L}+(?<!\d)|\s+|[^\s\p{L}]+")
    assert slow.merges == plain.merges


# ------------------------------------------------------------------------------------------------------
# Whole characters


@pytest.mark.parametrize("seed", range(9))
def test_whole_characters_equal_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = rng.choice(["aé中文字", "ab", "हिन्दी", "😀😁a", "éèêß", "\ud7ff\ue000\U0010ffff\u0800"])
    data = random_text(rng, alphabet, 60).encode()
    if seed % 3 == 0:  # bytes that are not UTF-8
        data = bytes(byte if rng.random() < 0.95 else rng.randrange(256) for byte in data)
    size = 256 + rng.randint(5, 80)
    counts = pybpe.count_words(iter([data]))
    tok = pybpe.train(counts=counts, vocab_size=size, whole_characters=True)
    words = [word for word, count in counts.to_dict().items() for _ in range(count)]
    assert tok.merges == reference.continued(words, [], size - 256, [reference.is_whole])


@pytest.mark.parametrize("text", [chinese(), mixed(), "हिन्दी में लिखा हुआ पाठ 😀😁😂🤣 العربية " * 50])
def test_every_token_is_whole_or_a_part(text: str) -> None:
    for more in ({}, {"superwords": True}):
        tok = pybpe.train(iter([text]), vocab_size=1500, whole_characters=True, **more)
        assert all(reference.is_whole(tok.model.vocab[i]) for i in range(256, tok.vocab_size))
        assert tok.decode(tok.encode(text)) == text


# ------------------------------------------------------------------------------------------------------
# Commands


def test_a_saved_file_says_what_was_trained(tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "tok.json"
    text.write_text(english()[:10_000], encoding="utf-8")
    options = ["--vocab-size", "800", "--superwords", "--whole-characters", "--quiet"]
    assert main(["train", str(text), *options, "-o", str(out)]) == 0
    facts = json.loads(out.read_bytes())["model"]["pybpe"]
    assert facts["superwords"] is facts["whole_characters"] is True
    assert main(["train", str(text), *options[2:], "--sizes", "400,800", "-o", str(out)]) != 0
