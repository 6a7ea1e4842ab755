"""Uses an installed pybpe as a user does, with only the wheel and its requirements: `make release-check`."""

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import files
from pathlib import Path
from pydoc_data import topics

import pybpe

VERSION = pybpe.__version__
SOURCE = Path(__file__).resolve().parents[1]


def command(*words: str) -> str:
    """Runs the command `pybpe` of this Python's environment. Returns its output."""
    return subprocess.check_output([Path(sys.executable).with_name("pybpe"), *words], text=True)


def use(folder: Path) -> None:
    """Trains, saves, loads, encodes, decodes, writes a workspace for llm.c and checks it."""
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(topics.topics.values()), encoding="utf-8")
    tok = pybpe.train(corpus, vocab_size=2000, special_tokens=["<|endoftext|>"])
    text = "Fresh 北京 \N{TEACUP WITHOUT HANDLE}<|endoftext|>"
    for name in ("tok.json", "tok.bin"):
        tok.save(folder / name)
        loaded = pybpe.Tokenizer.from_file(folder / name)
        assert loaded.encode(text) == tok.encode(text) and loaded.decode(tok.encode(text)) == text
    command("--version")
    shape = ["--vocab-size", "1000", "--layers", "1", "--heads", "1", "--channels", "8", "--sequence-length", "64"]
    command("llmc", "workspace", str(corpus), "-o", str(folder / "work"), *shape)
    command("llmc", "check", str(folder / "work"))
    assert {path.name for path in Path(command("--include-dir").rstrip()).iterdir()} == {
        *("llmc", "pybpe.c", "pybpe.h", "pybpe_train.h", "pybpe_corpus.h")
    }
    command("viz", "-t", str(folder / "tok.json"), "-o", str(folder / "tokens.html"), "--quiet")


if __name__ == "__main__":
    assert SOURCE / "pybpe" not in Path(pybpe.__file__).parents, f"{pybpe.__file__} is not the installed package"
    assert {file.parts[0] for file in files("pybpe") or ()} - {".."} == {
        "pybpe",
        "llmc_compat",
        f"pybpe-{VERSION}.dist-info",
    }
    with tempfile.TemporaryDirectory() as made:
        use(Path(made))
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # free-threaded Python turns the GIL on for a module that needs it
        assert not sys._is_gil_enabled()
    print(f"Python {sys.version.split()[0]}: pybpe {VERSION} works as installed")
