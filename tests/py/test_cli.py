"""The command line, run as a user runs it."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from commands import pybpe_program as run
from commands import refusal
from texts import chinese, english

import pybpe
from pybpe import cli
from pybpe.cli.common import watched
from pybpe.reading.files import corpus_files
from pybpe.reading.inputs import ReadOptions
from pybpe.reading.planning import progress_total
from pybpe.support import parallel, progress


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus and a tokenizer trained on it by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "novel.txt").write_text(english()[:300_000] + chinese(), encoding="utf-8", newline="")
    (folder / "small.txt").write_text("hardly any text")
    run(*"train novel.txt --vocab-size 2000 --special-token <|endoftext|> -o tok.json".split(), cwd=folder)
    return folder


def test_train_says_what_it_did_and_equals_the_api(folder: Path) -> None:
    out = folder / "again.json"
    result = run(
        *("train", folder / "novel.txt", "--vocab-size", 2000, "--special-token", "<|endoftext|>", "-o", out, "--json")
    )
    assert json.loads(result.stdout) == {"output": str(out), "vocab_size": 2000, "merges": 2000 - 257}
    assert result.stderr == b""
    assert out.read_bytes() == (folder / "tok.json").read_bytes()
    api = pybpe.train(folder / "novel.txt", vocab_size=2000, special_tokens=["<|endoftext|>"])
    assert pybpe.Tokenizer.from_file(out).merges == api.merges


def test_encode_and_decode_files_and_pipes(folder: Path) -> None:
    data = (folder / "novel.txt").read_bytes() + b"\xff\x00 <|endoftext|>"
    tok = pybpe.Tokenizer.from_file(folder / "tok.json")
    piped = run("encode", "-t", folder / "tok.json", stdin=data)
    assert [int(i) for i in piped.stdout.split()] == tok.encode(data)
    assert piped.stdout.endswith(b"\n") and piped.stderr.count(b"\n") == 1 and b"not UTF-8" in piped.stderr
    back = run("decode", "-t", folder / "tok.json", "-", stdin=piped.stdout)
    assert back.stdout == data
    (folder / "odd.txt").write_bytes(data)
    for name in ("ids.txt", "ids.npy"):
        run("encode", "-t", folder / "tok.json", folder / "odd.txt", "-o", folder / name)
        run("decode", "-t", folder / "tok.json", folder / name, "-o", folder / "back.txt", "--force")
        assert (folder / "back.txt").read_bytes() == data
    assert numpy.load(folder / "ids.npy").dtype == numpy.uint16
    ordinary = run("encode", "--ordinary", "-t", folder / "tok.json", stdin=b"<|endoftext|>")
    assert [int(i) for i in ordinary.stdout.split()] == tok.encode_ordinary("<|endoftext|>")
    assert run("encode", "-t", folder / "tok.json", stdin=b"").stdout == b"\n"
    assert run("decode", "-t", folder / "tok.json", stdin=b"").stdout == b""


@pytest.mark.slow
def test_ids_as_json(folder: Path) -> None:
    for text in (b"", b"Hello, world", b"word " * 200_000):
        encoded = run("encode", "--json", "-t", folder / "tok.json", stdin=text).stdout
        assert json.loads(encoded) == pybpe.Tokenizer.from_file(folder / "tok.json").encode(text)
        assert run("decode", "-t", folder / "tok.json", stdin=encoded).stdout == text
    assert run("decode", "-t", folder / "tok.json", stdin=b"10,11,\t12\r\n13").stdout
    bad = run("decode", "-t", folder / "tok.json", stdin=b"[10, 11, x]", code=2)
    assert b"found b'x' at byte 9" in bad.stderr


def test_training_from_and_to_pipes(folder: Path) -> None:
    novel = (folder / "novel.txt").read_bytes()
    options = ("--vocab-size", 2000, "--special-token", "<|endoftext|>")
    piped = run("train", "-", *options, "-o", "-", "--json", stdin=novel)
    assert piped.stdout == (folder / "tok.json").read_bytes()
    assert json.loads(piped.stderr) == {"output": "-", "vocab_size": 2000, "merges": 2000 - 257}
    with open(folder / "novel.txt", "rb") as stream:  # standard input that is a file
        command = [sys.executable, "-m", "pybpe", "train", "-", *map(str, options), "-o", str(folder / "stdin.json")]
        subprocess.run(command, stdin=stream, check=True)
    assert (folder / "stdin.json").read_bytes() == piped.stdout
    counted = run("count", "-", "-o", "-", "--special-token", "<|endoftext|>", "--quiet", stdin=novel)
    (folder / "novel.counts").write_bytes(counted.stdout)
    assert run("train", "--counts", folder / "novel.counts", *options, "-o", "-").stdout == piped.stdout
    exported = run("export", folder / "tok.json", "-o", "-", "--format", "bin", "--quiet").stdout
    run("export", folder / "tok.json", "-o", folder / "exported.bin")
    assert exported == (folder / "exported.bin").read_bytes()


def test_compressed_texts_are_read_as_in_training(folder: Path) -> None:
    """test_input_types.py has training."""
    data = (folder / "novel.txt").read_bytes()
    (folder / "packed.txt.gz").write_bytes(gzip.compress(data))
    pybpe.train(iter(["some text"]), vocab_size=260, normalizer="NFC").save(folder / "nfc.json")
    for name in ("nfc.json", "tok.json"):
        packed = run("encode", "-t", folder / name, folder / "packed.txt.gz").stdout
        assert packed == run("encode", "-t", folder / name, folder / "novel.txt").stdout
    (folder / "ids.txt.gz").write_bytes(gzip.compress(packed))
    assert run("decode", "-t", folder / "tok.json", folder / "ids.txt.gz").stdout == data
    facts = json.loads(run("count", "--json", "-t", folder / "tok.json", folder / "packed.txt.gz").stdout)
    assert facts["bytes"] == len(data)
    (folder / "cut.txt.gz").write_bytes(gzip.compress(data)[:-9])
    bad = run("count", "-t", folder / "tok.json", folder / "cut.txt.gz", code=2)
    assert b"cut.txt.gz: damaged before byte" in bad.stderr and bad.stderr.count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["llmc", "raw", "npy"])
def test_decode_checks_the_manifest(folder: Path, tmp_path: Path, form: str) -> None:
    """The ids of a file fit other tokenizers too, and most of the text would be right."""
    tok = pybpe.Tokenizer.from_file(folder / "tok.json")
    manifest = pybpe.binarize(tok, folder / "novel.txt", tmp_path / "out", format=form, splits=(1,), dtype="uint32")
    path = tmp_path / "out" / manifest.shards["train"][0].file
    for own in ("tok.json", "tok.bin"):
        tok.save(tmp_path / own)
        text = run("decode", "-t", tmp_path / own, path).stdout.replace(b"<|endoftext|>", b"")
        assert text == (folder / "novel.txt").read_bytes()
    pybpe.train(iter(["another text"]), vocab_size=tok.vocab_size, special_tokens=["<|endoftext|>"]).save(
        tmp_path / "other.json"
    )
    bad = run("decode", "-t", tmp_path / "other.json", path, code=2)
    assert bad.stdout == b"" and b"another tokenizer made these tokens" in bad.stderr


# ------------------------------------------------------------------------------------------------------
# Help and errors


def test_version_names_the_unicode_versions() -> None:
    version = pybpe.__version__
    expected = rf"pybpe {version} \(C library {version}, Unicode \d+\.0\.0 in patterns, 9\.0\.0 in normalizers\)\n"
    assert re.fullmatch(expected, run("--version").stdout.decode())


# Commands as they are typed, and a part of what they answer.
TRAIN = "train novel.txt --vocab-size 300"
BINARIZE = "binarize -t tok.json novel.txt -o out"
WRONG = [
    ("train missing.txt --vocab-size 300 -o x.json", "missing.txt"),
    ("train missing.txt -o x.json", "missing.txt: cannot be opened"),  # before the option that is missing too
    ("train '*.nothing' --vocab-size 300 -o x.json", "*.nothing: "),
    ("pack tok.json -t tok.json --sequence-length 8 -o x", "not a file: `pybpe binarize` makes one"),
    ("train novel.txt --vocab-size 100 -o x.json", "--vocab-size 100 is too small: the minimum is 256"),
    ("train novel.txt --vocab-size 0 -o x.json", "--vocab-size 0 is too small: the minimum is 256"),
    (f"{TRAIN} -o novel.txt/such/x.json", "novel.txt"),
    (f"{TRAIN} --pattern gtp2 -o x.json", "gtp2"),
    (f"{TRAIN} -o x.json --workers 0", "--workers must be at least 1"),
    (f"{TRAIN} -o x.json --tie-break x", "--tie-break must be one of"),
    ("encode -t missing.json novel.txt", "pybpe: missing.json: cannot be opened: No such file or directory\n"),
    ("encode -t novel.txt novel.txt", "novel.txt"),
    ("encode -t tok.json missing.txt", "missing.txt"),
    ("decode -t tok.json novel.txt", "at byte 0"),
    (f"{BINARIZE} --splits a,b", "--splits"),
    (f"{BINARIZE} --format x", "--format must be one of llmc"),
    ("binarize -t tok.json small.txt --split-by token -o o", "--min-shard-tokens 0"),
    ("binarize -t tok.json missing.txt -o out2", "missing.txt"),
    ("count -t tok.json novel.txt --pattern cl100k", "--pattern needs -o"),
    ("count -t tok.json novel.txt --max-bytes 5", "--max-bytes needs -o"),
    ("count novel.txt -o c --ordinary", "--ordinary needs -t"),
    ("count novel.txt -o c --text x", "--text needs -t"),
    ("export tok.json -o x.json --pattern cl100k", "tok.json: has the pattern 'gpt2': --pattern is for files without"),
    ("count novel.txt -o c --task-timeout 5", "--task-timeout needs --dask"),
    ("inspect novel.txt", "novel.txt"),
    ("inspect tok.json --verbose", "--verbose; commands show progress unless you give --quiet (see"),
    ("trian", "there is no command 'trian'; did you mean train?"),
    (TRAIN, "required: -o/--output"),
    ("train novel.txt --vocab-size many -o x.json", "--vocab-size: expected a number"),
    (f"{TRAIN} -o x.txt", "x.txt: .txt is not a known format: use .json"),
    ("train novel.txt --sizes 300 --plot x.doc -o x.json", "x.doc: the name of a plot must end in"),
    ("train - --vocab-size 300 --checkpoint x -o x.json", "standard input cannot be recog"),
    ("export tok.json --format files -o -", "makes a folder"),
    (f"{TRAIN} --plot p.svg -o x.json", "--plot needs --sizes"),
    (f"{TRAIN} --channels 512 -o x.json", "--channels needs --sizes"),
    ("train novel.txt --sizes 300 --channels 0 -o x.json", "--channels must be at least 1, not 0"),
    ("train novel.txt --sizes 280,300 --base tok.json -o x.json", "cannot be used with --base"),
    ("train novel.txt -o x.json", "--vocab-size"),
    ("train --vocab-size 300 -o x.json", "--counts"),
    ("train -o x.json", "use --vocab-size N"),
    (f"{TRAIN} --counts x -o x.json", "--counts"),
    ("train --counts novel.txt --vocab-size 300 -o x.json", "novel.txt: not a complete .counts"),
    ("count -o x.json", "name files"),
    *((f"export tok.json -o x.json --special-token '{s}'", "expected TEXT=ID") for s in ("<s>", "<s>=x")),
    ("export tok.json -o x.json more words", "unrecognized arguments: more words"),
    ("llmc", "required: COMMAND"),
    ("llmc nothing", "there is no command 'nothing'"),
    ("info tok.json", "there is no command 'info'; did you mean inspect?"),
    ("tokenize", "did you mean encode?"),
    ("check work", "did you mean llmc check?"),
    ("zzz", "there is no command 'zzz'; the commands are train, encode, decode, export"),
    ("llmc chek", "did you mean check?"),
    ("x" * 1000, "there is no command 'xxx"),
    ("train novel.txt --special-tokens '<a>' -o x.json", "did you mean --special-token S, once per token?"),
    ("train novel.txt --vocab_size 300 -o x.json", "arguments: --vocab_size 300; did you mean --vocab-size"),
    ("train novel.txt --vocab_size=300 -o x.json", "did you mean --vocab-size?"),
    (f"{TRAIN} --fast -o x.json", "pybpe: unrecognized arguments: --fast (see pybpe train --help)\n"),
    (
        "compare tok.json tok.json --text novel.txt",
        "arguments: --text novel.txt; did you mean --file FILE?",
    ),  # not --text-key
    (f"{TRAIN} --vocab 300 -o x.json", "unrecognized arguments: --vocab"),  # options are not shortened
    ("encode -t tok.json novel.txt -o new.txt.gz", "new.txt.gz: this command does not compress"),
    ("decode -t tok.json 10 -o a.txt.zst", "a.txt.zst: this command does not compress"),
    ("encode -t tok.json --num-workers 2", "did you mean --workers?"),
    ("encode -t tok.json Hello", "Hello: no such file. If you mean this text, use --text"),
    (f"count -t tok.json '{'Hello, ' * 100}'", "...: no such file"),
    ("count -t tok.json novel.txt 'nov*.txt'", "novel.txt (in nov*.txt): the same file as novel.txt"),
    ("count -t /dev/null novel.txt", "/dev/null: this file is empty, not a tokenizer"),
    ("encode -t tok.json novel.txt --text a", "use a file or --text, not both"),
    ("decode -t tok.json 10 x", "x: this is not an id"),
    ("binarize -t tok.json novel.txt -o /proc/nope --eot none", "pybpe: /proc/nope: cannot be made: "),
    ("decode -t tok.json 10 2001", "the ids: 2001 at position 1"),
    ("decode -t tok.json novel.txt novel.txt", "novel.txt: this is not an id, and only one file"),
]


@pytest.mark.parametrize(("words", "name"), [("--help", "binarize"), ("llmc --help", "checkpoint")])
def test_the_help_of_a_group_has_one_line_per_command(words: str, name: str) -> None:
    shown = run(*words.split()).stdout.decode()
    assert re.search(rf"\n\n[a-z. ]+:\n(  \w+ +\w.*\n)*  {name} +\w.*\n", shown) and "\n  COMMAND" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(("command", "message"), WRONG)
def test_bad_input_is_one_line_and_exit_code_2(
    folder: Path, command: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    said = refusal(command)
    assert message in said and len(said) < 400
    assert not re.search(r"(?<![\w.-])[a-z_]+=(?!\w+\.)", re.sub(r"`[^`]*`", "", said))  # the spelling of Python
    assert not (folder / "x.json").exists()


def test_files_on_both_sides_of_an_option(folder: Path) -> None:
    novel = folder / "novel.txt"
    others = [folder / "novel2.txt", folder / "novel3.txt"]
    for other in others:
        other.write_bytes(novel.read_bytes())
    run("train", novel, "--vocab-size", 300, others[0], "-o", folder / "both.json", others[1])
    assert pybpe.Tokenizer.from_file(folder / "both.json") == pybpe.train([novel, *others], vocab_size=300)
    command = [sys.executable, "-m", "pybpe", "train", "--vocab-size", "300", "-o", "dash.json", "--", "-novel.txt"]
    (folder / "-novel.txt").write_bytes(novel.read_bytes() * 3)
    subprocess.run(command, cwd=folder, check=True)
    assert pybpe.Tokenizer.from_file(folder / "dash.json").vocab_size == 300


def test_names_that_are_no_text(folder: Path) -> None:
    name = os.fsdecode(bytes(folder) + b"/\xff.json")
    result = run("train", folder / "novel.txt", "--vocab-size", 300, "-o", name, "--json")
    assert json.loads(result.stdout)["output"] == name
    assert os.path.exists(name)
    assert b"\\udcff.txt: no such file" in run("encode", "-t", name, name[:-4] + "txt", code=2).stderr


def test_decode_names_the_place_of_a_bad_id(folder: Path) -> None:
    bad = run("decode", "-t", folder / "tok.json", stdin=b"1 2 99999", code=2)
    assert bad.stderr == b"pybpe: -: 99999 at position 2 is not an id of this vocabulary (0 to 1999)\n"
    numpy.save(folder / "bad.npy", numpy.append(numpy.ones(1_100_000, "u2"), [2, 9999]))
    (folder / "bad.txt").write_bytes(b"1 " * 1_100_000 + b"2 9999")
    for name in ("bad.npy", "bad.txt"):  # both of several blocks
        bad = run("decode", "-t", folder / "tok.json", folder / name, code=2)
        expected = f"pybpe: {folder}/{name}: 9999 at position 1100001 is not an id of this vocabulary (0 to 1999)\n"
        assert bad.stderr.decode() == expected
    bad = run("decode", "-t", folder / "tok.json", stdin=b"1 2 -3 4", code=2)
    assert b"'-3' at byte 4" in bad.stderr


@pytest.mark.slow
def test_decode_of_files_that_hold_no_ids(folder: Path) -> None:
    for digits in (5_000, 1_100_000):  # more than Python reads; more than a block
        bad = run("decode", "-t", folder / "tok.json", stdin=b"1 2\t" + b"9" * digits, code=2)
        assert b"expected decimal ids, found b'9999" in bad.stderr and b"at byte 4" in bad.stderr
        assert bad.stderr.count(b"\n") == 1
    zeros = b"0" * 3_999 + b"9"
    assert (
        run("decode", "-t", folder / "tok.json", stdin=zeros).stdout
        == run("decode", "-t", folder / "tok.json", stdin=b"9").stdout
    )
    many = b"9\t" * 600_000  # no space, and no new line
    assert len(run("decode", "-t", folder / "tok.json", stdin=many).stdout) == 600_000
    for header in (b"{'descr': '<u2', 'shape': (2,", b"'''", b"(" * 3000):
        data = b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(4)
        (folder / "odd.npy").write_bytes(data)
        bad = run("decode", "-t", folder / "tok.json", folder / "odd.npy", code=2)
        assert b"odd.npy: damaged" in bad.stderr and bad.stderr.count(b"\n") == 1


def shell(folder: Path, line: str) -> tuple[int, str]:
    """Returns the exit code, and the output on standard error."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = ["bash", "-o", "pipefail", "-c", line.replace("pybpe", f"{shlex.quote(sys.executable)} -m pybpe")]
    result = subprocess.run(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True, check=False)
    return result.returncode, result.stderr


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    for line in ("pybpe encode -t tok.json novel.txt | head -c 10 >/dev/null", "pybpe inspect tok.json | true"):
        assert shell(folder, line) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "into"),
    [
        ("pybpe inspect tok.json", ">/dev/full"), ("pybpe inspect tok.json", ">&-"), ("pybpe --version", ">/dev/full"),
        ("pybpe encode -t tok.json novel.txt", ">/dev/full"), ("pybpe encode -t tok.json novel.txt", ">&-"),
        ("pybpe train --help", ">/dev/full"), ("pybpe --help", ">/dev/full"), ("pybpe llmc check --help", ">/dev/full"),
        ("pybpe train novel.txt --vocab-size 300 -o -", ">/dev/full"),
        ("PYTHONUNBUFFERED=1 pybpe --version", ">/dev/full"),
    ],
)  # fmt: skip
def test_standard_output_that_takes_nothing(folder: Path, line: str, into: str) -> None:
    reason = "Bad file descriptor" if into == ">&-" else "No space left on device"
    assert shell(folder, f"{line} {into}") == (2, f"pybpe: standard output: {reason}\n")


def test_without_a_temporary_folder_the_error_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [])
    assert refusal("train novel.txt --vocab-size 300 -o -").startswith("pybpe: No usable temporary directory found")


@pytest.mark.slow
def test_closed_streams(folder: Path) -> None:
    for line in ("encode -t tok.json", "train - --vocab-size 300 -o x.json"):
        assert shell(folder, f"pybpe {line} <&-") == (
            2, "pybpe: standard input: cannot be read: Bad file descriptor\n"
        )  # fmt: skip
    assert not (folder / "x.json").exists()
    # The first file to be opened would get the number of a stream, and messages would be written into it.
    assert shell(folder, "pybpe encode -t tok.json novel.txt -o all.txt <&- >&- 2>&-") == (0, "")
    run("encode", "-t", folder / "tok.json", folder / "novel.txt", "-o", folder / "one.txt")
    assert (folder / "all.txt").read_bytes() == (folder / "one.txt").read_bytes()
    assert shell(folder, "pybpe count -t missing.json novel.txt 2>&- | wc -c | grep -qx 0")[0] == 2


@pytest.mark.parametrize("interrupt", ["raise KeyboardInterrupt", "exec('raise KeyboardInterrupt')"])
def test_ctrl_c_at_the_start_is_one_line(tmp_path: Path, interrupt: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'pybpe.cli': {interrupt}\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    result = subprocess.run([sys.executable, "-m", "pybpe", "--help"], env=env, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (130, b"pybpe: interrupted\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("pybpe export --form", {"--format"}), ("pybpe llmc che", {"check", "checkpoint"})],
)
def test_the_shell_completes(tmp_path: Path, line: str, expected: set[str]) -> None:
    out = tmp_path / "out"
    env = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}
    env |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(out), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-m", "pybpe"], env=env, check=True)
    assert {word.strip() for word in out.read_text().split("\n")} == expected


def test_a_log_gets_lines_and_a_dashboard_a_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    clock = iter(range(0, 10**6, 4))  # seconds; each look at the clock takes four
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    (tmp_path / "in.txt").write_text(english()[:20000])
    line = "train in.txt --vocab-size 400 -o t.json --status status.json --memory-limit 1G"
    assert cli.main(line.split()) == 0
    said = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"pybpe: train in.txt: started at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", said.pop(0))
    assert re.fullmatch(r"pybpe: train: finished at \d{4}-\S+Z, after (\d+ min )?\d+ s", said.pop())
    assert said and all(re.fullmatch(r"pybpe: (counting|merging): [\d,.]+ .*", each) for each in said)
    assert len(said) < 10
    status = json.loads((tmp_path / "status.json").read_bytes())
    facts = {name: status[name] for name in ("command", "state", "step", "done", "total", "unit", "message")}
    expected = {"command": "train", "state": "finished", "step": "merging", "done": 144, "total": 144}
    assert facts == {**expected, "unit": "merge", "message": ""}
    for name, quiet in ("a.json", "--quiet"), ("b.json", "--progress none"), ("c.json", "--json"):
        assert cli.main(f"{line} {quiet}".replace("t.json", name).split()) == 0
        assert capsys.readouterr().err == ""
    assert cli.main("train missing.txt --vocab-size 400 -o u.json --status status.json".split()) == 2
    status = json.loads((tmp_path / "status.json").read_bytes())
    assert (status["state"], "missing.txt" in status["message"]) == ("failed", True)
    (tmp_path / "mine.json").write_text("[1]")
    assert cli.main("train in.txt --vocab-size 400 -o u.json --status mine.json".split()) == 2
    assert "--status would replace" in capsys.readouterr().err.splitlines()[-1]


def test_work_goes_on_without_its_status_file(tmp_path: Path) -> None:
    path, told = tmp_path / "gone" / "status.json", list[str]()
    path.parent.touch()
    with pytest.raises(pybpe.errors.FileError, match="status.json: "):  # at the start
        progress.StatusFile(str(path), "train")
    path.parent.unlink()
    parser = SimpleNamespace(prog="pybpe train", paths={})
    args = Namespace(parser=parser, status=str(path), progress="lines", quiet=False, json=False)
    with pytest.warns(pybpe.errors.PybpeWarning, match="status.json: .* goes on without this status file") as warned:
        with pytest.raises(KeyboardInterrupt), watched(args, told.append):
            assert json.loads(path.read_bytes())["state"] == "running"
            shutil.rmtree(path.parent)
            path.parent.touch()
            for _ in range(2):
                progress.watchers[0](progress.Status("merging", 3, 3, "merge", 9.0))
                progress.watchers[1](progress.Status("merging", 3, 3, "merge", 9.0))
            raise KeyboardInterrupt
    assert len(warned) == 1
    assert "train: interrupted at" in told[-1]


def test_a_log_says_what_was_interrupted_before_its_first_line() -> None:
    parser = SimpleNamespace(prog="pybpe train", paths={})
    for how, count in (("lines", 2), ("none", 0)):
        told, args = list[str](), Namespace(parser=parser, progress=how, quiet=False, json=False)
        with pytest.raises(KeyboardInterrupt), watched(args, told.append):
            raise KeyboardInterrupt
        assert len(told) == count and all(map(re.fullmatch, ("train: started at .*", "train: interrupted at .*"), told))


def test_a_step_without_a_total_tells_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    clock = iter(range(0, 100, 6))  # seconds
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(progress, "watchers", (progress.lines(told.append),))
    with progress.Progress("encoding", None, "B", False) as bar:
        bar.add(10**6)
        bar.add(10**6)
    assert [line.split(",")[0] for line in told] == ["encoding: 0.0 kB", "encoding: 2.0 MB of 2.0 MB (100%)"]


def test_a_log_shows_how_far_a_single_task_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_WATCH_SECONDS", 0.0)
    line = json.dumps({"text": english()[:2000]}) + "\n"
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(line.encode() * 5000))
    assert cli.main("corpus in.jsonl.gz -o out.jsonl --workers 1".split()) == 0
    said = capsys.readouterr().err.splitlines()
    assert "corpus in.jsonl.gz: started at" in said[0] and "corpus: finished at" in said[-1]
    done = [float(each.split()[2]) for each in said if each.startswith("pybpe: cleaning:")]
    assert len(set(done)) > 4 and done == sorted(done)
    assert {each.split(":")[1] for each in said[1:-1]} == {" cleaning", " writing"}


def test_standard_input_has_a_total_if_it_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"A text. " * 99)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"A text. " * 99))
    reader, writer = os.pipe()
    kept, plain, packed = os.dup(0), *(os.open(tmp_path / name, os.O_RDONLY) for name in ("a.txt", "a.txt.gz"))
    try:
        for handle, total in ((plain, 99 * 8), (packed, None), (reader, None)):
            os.dup2(handle, 0)
            assert progress_total(corpus_files(["-"], ReadOptions()), "text") == total
            assert handle == reader or os.lseek(0, 0, os.SEEK_CUR) == 0
    finally:
        os.dup2(kept, 0)
        for handle in (kept, plain, packed, reader, writer):
            os.close(handle)


def test_lines_of_progress() -> None:
    status = progress.Status("encoding", 1_250_000_000, 3_700_000_000, "B", 10.0)
    assert str(status) == "encoding: 1.2 GB of 3.7 GB (33%), 125.0 MB/s, 20 s left"
    assert str(status._replace(total=None)) == "encoding: 1.2 GB, 125.0 MB/s"
    assert str(status._replace(done=10**6, seconds=100.0)) == (
        "encoding: 1.0 MB of 3.7 GB (0%), 10.0 kB/s, 102 h 45 min left"
    )
    resumed = status._replace(earlier=1_000_000_000)
    assert str(resumed) == "encoding: 1.2 GB of 3.7 GB (33%), 25.0 MB/s, 1 min 38 s left"
    assert str(status._replace(done=5, total=6, unit="shard")) == "encoding: 5 of 6 shards (83%), 2 s left"
    told: list[str] = []
    watch = progress.lines(told.append)
    for second in range(200):
        watch(status._replace(done=second, seconds=second))
    assert len(told) == 4
    watch(progress.Status("merging", 3, 0, "merge", 4.0))
    watch(progress.Status("merging", 5, 0, "merge", 5.0))
    assert told[4:] == ["merging: 5 merges"]
    for seconds, done in ((1.0, 0), (5.0, 0), (6.0, 0), (70.0, 90), (71.0, 100), (72.0, 100)):
        watch(progress.Status("cleaning", done, 100, "document", seconds))
    assert [line.split()[1] for line in told[5:]] == ["0", "90", "100"]


def test_a_step_is_watched_while_a_task_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[progress.Status] = []
    enough = threading.Event()

    def watch(status: progress.Status) -> None:
        told.append(status)
        if len(told) == 4:
            enough.set()

    monkeypatch.setattr(progress, "watchers", (watch,))
    monkeypatch.setattr(progress, "_WATCH_SECONDS", 0.0)
    monkeypatch.setattr(parallel, "_LOOK_SECONDS", 0.01)
    with progress.Progress("encoding", 10, "B", False):
        assert list(parallel.map_ordered(lambda _: enough.wait(60), [1], 2)) == [True]
