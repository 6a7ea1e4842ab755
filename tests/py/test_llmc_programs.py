"""train.c and write.c, which a workspace has: compiled with llm.c's train_gpt2.c if LLMC is its folder, otherwise with
a stand-in that has the same names and types."""

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy
import pytest
from commands import pybpe_command
from test_epub import epub
from texts import english

import pybpe
from llmc_compat.checkpoint import GPT2Config, read_checkpoint, write_random_checkpoint

CONFIG = GPT2Config(300, 384, 16, 2, 2, 16)


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a workspace has it, in which both programs are compiled."""
    folder = tmp_path_factory.mktemp("programs")
    shutil.copytree(root / "llmc_compat" / "programs", folder / "programs")
    (folder / "programs" / "Makefile").rename(folder / "Makefile")
    (folder / "programs" / "include").symlink_to(root / "llmc_compat" / "include")
    (folder / "text.txt").write_text(english()[:20_000], encoding="utf-8")
    tok = pybpe.train(folder / "text.txt", vocab_size=300, special_tokens=["<|endoftext|>"])
    tok.save(folder / "gpt2_tokenizer.bin")
    options = {"splits": (8, 2), "split_by": "token", "name": "corpus", "shard_tokens": 3000}
    pybpe.binarize(tok, folder / "text.txt", folder / "data", **options)  # type: ignore[arg-type]
    write_random_checkpoint(folder / "gpt2_124M.bin", CONFIG, dtype="fp32", seed=1)
    build = folder / "programs" / "build"
    build.mkdir()
    whole = ["-Wl,--whole-archive", root / "build" / "obj" / "libpybpe.a", "-Wl,--no-whole-archive"]
    subprocess.run(["cc", "-r", "-nostdlib", *whole, "-o", build / "pybpe.o"], check=True)
    os.utime(build / "pybpe.o", (2**32, 2**32))  # newer than its source, which takes long to compile
    llmc = os.environ.get("LLMC", root / "tests" / "c" / "llmc_standin")
    targets = ["programs/build/train", "programs/build/write"]
    subprocess.run(["make", *targets, f"LLMC={llmc}", "CFLAGS=-O1"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Path:
    for name in ("data", "gpt2_tokenizer.bin", "gpt2_124M.bin"):
        (tmp_path / name).symlink_to(built / name)
    return tmp_path


def run(
    built: Path, folder: Path, program: str, *arguments: object, **variables: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [built / "programs" / "build" / program, *map(str, arguments)],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True,
    )  # fmt: skip


TRAIN = ("-x", 12, "-v", 3, "-b", 2, "-t", 16, "-m", 2, "-s", 6, "-l", 0.02)


@pytest.mark.parametrize("last", [1, 3, 5, 11])
def test_training_goes_on_after_it_was_killed(built: Path, workspace: Path, last: int) -> None:
    whole = run(built, workspace, "train", *TRAIN, "-o", "whole.bin")
    assert whole.returncode == 0, whole.stderr
    losses = [float(loss) for loss in re.findall(r"val loss ([\d.]+)", whole.stdout)]
    assert len(losses) == 5 and losses[-1] < losses[2] < losses[0]
    if "LLMC" in os.environ:
        pytest.skip("llm.c does not kill itself")
    assert run(built, workspace, "train", *TRAIN, "-o", "killed.bin", STANDIN_LAST_STEP=str(last)).returncode == 9
    rest = run(built, workspace, "train", *TRAIN, "-o", "killed.bin")
    assert (
        f"going on after step {last // 3 * 3}{';' if last >= 3 else chr(10)}" in rest.stdout
        and "inf" not in rest.stdout
    )
    for name in ("{}.bin", "{}.bin.state"):
        assert (workspace / name.format("killed")).read_bytes() == (workspace / name.format("whole")).read_bytes()
    assert {path.name for path in workspace.iterdir() if "tmp" in path.name} == set()


def test_the_trained_model_is_a_checkpoint(built: Path, workspace: Path) -> None:
    assert run(built, workspace, "train", *TRAIN).returncode == 0
    assert read_checkpoint(workspace / "trained.bin")[0] == CONFIG
    assert run(built, workspace, "train", *TRAIN).stdout.count("val loss") == 2  # what was reached, and the same again


def test_what_training_refuses(built: Path, workspace: Path) -> None:
    assert run(built, workspace, "train", *TRAIN).returncode == 0
    other = run(built, workspace, "train", *TRAIN, "-b", 3)
    assert other.returncode == 1 and "belongs to another model, batch or data" in other.stderr
    (workspace / "trained.bin.state").unlink()
    lost = run(built, workspace, "train", *TRAIN)
    assert lost.returncode == 1 and "training cannot go on without trained.bin.state" in lost.stderr
    for arguments in (("-x", "12x"), ("-x",), ("-y", 1), ("x", 1), ("-xx", 1)):
        result = run(built, workspace, "train", *arguments)
        assert result.returncode == 1 and "Usage:" in result.stderr
    asked = run(built, workspace, "train", "-h")
    assert asked.returncode == 0 and "Usage:" in asked.stdout and asked.stderr == ""
    assert "-t at most 16" in run(built, workspace, "train", "-t", 17).stderr
    pybpe.train(iter([b"abc" * 9]), vocab_size=258, special_tokens=["<|endoftext|>"]).save(workspace / "other.bin")
    untrained = run(built, workspace, "write", "-e", "none.bin")
    assert untrained.returncode == 1 and "there is no none.bin: run make train first" in untrained.stderr
    for program in ("train", "write"):
        result = run(built, workspace, program, "-k", "other.bin", "-e", "gpt2_124M.bin")
        assert result.returncode == 1 and "other.bin is not the tokenizer of gpt2_124M.bin" in result.stderr


# ----------------------------------------------------------------------------------------------------
# Writing


def layernorm(x: numpy.ndarray, weight: numpy.ndarray, bias: numpy.ndarray) -> numpy.ndarray:
    return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def logits(w: dict[str, numpy.ndarray], ids: list[int]) -> numpy.ndarray:
    """Returns GPT-2's logits after the last of some ids."""
    T, C, heads = len(ids), CONFIG.channels, CONFIG.num_heads
    x = w["wte"][ids] + w["wpe"][:T]
    for i in range(CONFIG.num_layers):
        qkv = layernorm(x, w["ln1w"][i], w["ln1b"][i]) @ w["qkvw"][i].T + w["qkvb"][i]
        q, k, v = (part.reshape(T, heads, -1).transpose(1, 0, 2) for part in numpy.split(qkv, 3, axis=1))
        scores = q @ k.transpose(0, 2, 1) / numpy.sqrt(C // heads) + numpy.triu(numpy.full((T, T), -1e30), 1)
        attention = numpy.exp(scores - scores.max(-1, keepdims=True))
        y = (attention / attention.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(T, C)
        x = x + y @ w["attprojw"][i].T + w["attprojb"][i]
        h = layernorm(x, w["ln2w"][i], w["ln2b"][i]) @ w["fcw"][i].T + w["fcb"][i]
        h = 0.5 * h * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (h + 0.044715 * h**3)))
        x = x + h @ w["fcprojw"][i].T + w["fcprojb"][i]
    return layernorm(x[-1], w["lnfw"], w["lnfb"]) @ w["wte"][: CONFIG.vocab_size].T


@pytest.mark.parametrize("prompt", ["", "In the beginning", "naïve 你好"])
def test_it_writes_what_the_model_says(built: Path, workspace: Path, prompt: str) -> None:
    tok = pybpe.Tokenizer.from_file(workspace / "gpt2_tokenizer.bin")
    weights = {
        name: array.astype(numpy.float64) * (1 if name.startswith("ln") else 20)  # so that the tokens depend on all
        for name, array in read_checkpoint(workspace / "gpt2_124M.bin")[1].items()
    }
    scaled = numpy.concatenate([array.astype("<f4").ravel() for array in weights.values()])
    head = (workspace / "gpt2_124M.bin").read_bytes()[:1024]
    (workspace / "large.bin").write_bytes(head + scaled.tobytes())
    assert tok.eot_token is not None
    ids, most = [tok.eot_token, *tok.encode(prompt)], CONFIG.max_seq_len
    window, found = ids, list[int]()
    while len(found) < 40:  # more than the longest sequence: write.c then goes on with the newer half
        token = int(logits(weights, window).argmax())
        if token == tok.eot_token:
            break
        found.append(token)
        window = (window[-(most // 2) :] if len(window) == most else window) + [token]
    result = run(built, workspace, "write", "-e", "large.bin", "-p", prompt, "-t", 0, "-n", 40)
    text = tok.decode_bytes(found).decode("utf-8", "ignore")
    assert result.returncode == 0, result.stderr
    written = re.sub(r"\A(\[GPT-2\]\n(\w+: \d+\n)*)?\n", "", result.stdout).removeprefix(prompt).removesuffix("\n")
    printable = "".join(c for c in text if c.isprintable() or c.isspace())
    assert written == printable and len(found) > 0


def test_samples_depend_on_the_seed_alone(built: Path, workspace: Path) -> None:
    def write(*arguments: object) -> str:
        return run(built, workspace, "write", "-e", "gpt2_124M.bin", "-n", 30, *arguments).stdout

    assert write("-s", 1) == write("-s", 1) != write("-s", 2)
    assert write("-s", 1, "-g", 1) == write("-s", 2, "-t", 0)  # the most probable token is the only one
    assert write("-s", 1, "-g", 300) == write("-s", 1, "-g", 0)  # all of them


def test_the_stand_in_has_the_declarations_of_llmc(root: Path) -> None:
    llmc = os.environ.get("LLMC")
    if llmc is None:
        pytest.skip("LLMC is not set")

    def functions(path: Path) -> dict[str, str]:
        text = path.read_text(encoding="utf-8").split("#ifndef TESTING")[0]
        found = re.findall(r"^(?:void|float\*?) ?\*?(\w+)\(([^)]*)\) \{", text, re.MULTILINE)
        return {
            name: re.sub(r"\s+", " ", arguments).replace(" *", "* ").replace("*  ", "* ") for name, arguments in found
        }

    ours = functions(root / "tests" / "c" / "llmc_standin" / "train_gpt2.c")
    theirs = functions(Path(llmc) / "train_gpt2.c")
    assert len(ours) == 11 and ours.items() <= theirs.items()


@pytest.mark.slow
def test_a_shelf_of_books_becomes_text_in_four_commands(built: Path, root: Path, tmp_path: Path) -> None:
    """Books in EPUB, others in the encodings and with the line ends that people have, some of them in an archive."""
    shelf, text = tmp_path / "shelf", english()
    shelf.mkdir()
    chinese = "这是我们第一次来到这个地方，他说他不知道要怎么去，我也不会。大家都在那里等着，天就黑了。\n" * 60
    traditional = "這是我們第一次來到這個地方，他說他不知道要怎麼去，我也不會。大家都在那裡等著，天就黑了。\n" * 60
    for number in range(5):
        part = text[number * 9000 :][:9000]
        (shelf / f"{number}.epub").write_bytes(epub("".join(f"<p>{line}</p>" for line in part.split("\n")).encode()))
    (shelf / "utf8.txt").write_text(text[45_000:60_000], encoding="utf-8")
    (shelf / "windows.txt").write_bytes(chinese.replace("\n", "\r\n").encode("gb18030"))
    with zipfile.ZipFile(shelf / "more.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._big5.txt", b"\0\1")
        archive.writestr("more/big5.txt", traditional.encode("big5hkscs"))
        archive.writestr("more/6.epub", epub(text[60_000:70_000].encode()))
    said = pybpe_command("llmc", "workspace", shelf, "-o", tmp_path / "work", "--vocab-size", 700)
    assert said.returncode == 0, said.stderr
    for told in (
        "windows.txt: not UTF-8, read as gb18030",
        "windows.txt: all lines end with",
        "big5.txt: not UTF-8, read",
    ):
        assert said.stderr.count(told) == 1, said.stderr
    said = pybpe_command("llmc", "check", tmp_path / "work")
    assert said.returncode == 0 and "make train LLMC=path/to/llm.c" in said.stdout
    build = tmp_path / "work" / "programs" / "build"
    build.mkdir()
    shutil.copy2(built / "programs" / "build" / "pybpe.o", build)  # which takes long to compile
    llmc = os.environ.get("LLMC", root / "tests" / "c" / "llmc_standin")
    make = ["make", "-C", tmp_path / "work", f"LLMC={llmc}", "CFLAGS=-O1", "STEPS=3"]
    for words in (["train", "ARGS=-v 2 -s 1 -b 1 -t 16 -m 1"], ["write", "PROMPT=这是", "ARGS=-n 8"]):
        ended = subprocess.run([*make, *words], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
    assert "这是" in ended.stdout and "\ufffd" not in ended.stdout
