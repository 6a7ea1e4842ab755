"""How often pybpe finds the encoding of a text file: right, refused, or wrong.

    python benchmarks/text_encodings.py ROOT [--each 4] [--seed 1] [--size 10000000]

ROOT has the unpacked Debian packages (dpkg -x) debian-reference-fr, debian-reference-ja, fortunes-ru, fortunes-zh,
installation-guide-amd64, maint-guide-ja, and manpages-fr, -ja, -ru and -zh. Other texts in UTF-8 may be in
ROOT/LANGUAGE.txt, such as zh.txt. The script encodes parts of these, of 1 kB to 1 MB, as people have them, some of them
damaged, and reads each as a command would.
"""

import argparse
import glob
import gzip
import os
import random
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator

from pybpe.errors import FormatError
from pybpe.reading.input_file import InputFile

_GUIDE = "usr/share/doc/installation-guide-amd64/*/install.{}.txt.gz"
_MAN = "usr/share/man/{}/man*/*.gz"
SOURCES = {
    "zh": [_GUIDE.format("zh_CN"), "usr/share/games/fortunes/*.u8", "zh.txt"],
    "zh_TW": [_GUIDE.format("zh_TW"), _MAN.format("zh_TW"), "zh_TW.txt"],
    "ja": [_GUIDE.format("ja"), "usr/share/debian-reference/debian-reference.ja.txt.gz", _MAN.format("ja")],
    "ko": [_GUIDE.format("ko")],
    "ru": [_GUIDE.format("ru"), _MAN.format("ru")],
    "fr": [_GUIDE.format("fr"), "usr/share/debian-reference/debian-reference.fr.txt.gz"],
    "de": [_GUIDE.format("de")],
    "es": [_GUIDE.format("es")],
    "en": [_GUIDE.format("en"), "en.txt"],
}
ENCODINGS = {
    "zh": ["gb18030", "gbk", "utf-16-le", "utf-16-be", "utf-8"],
    "zh_TW": ["big5", "utf-16-le", "utf-8"],
    "ja": ["shift_jis", "euc_jp", "utf-16-le", "utf-8"],
    "ko": ["euc_kr", "cp949", "utf-16-be", "utf-8"],
    "ru": ["cp1251", "koi8_r", "utf-16-be", "utf-8"],
    "fr": ["latin-1", "cp1252", "utf-16-le", "utf-8"],
    "de": ["latin-1", "cp1252", "utf-8"],
    "es": ["latin-1", "cp1252", "utf-8"],
    "en": ["cp1252", "utf-16-le", "utf-8"],
}
_DAMAGED = ("utf-8", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr")  # in these, damage can be noticed
# Bytes that two encodings give to two characters which look the same; the choice of one is no error.
_SAME = str.maketrans("〜−‖¢£¬—¦", "～－∥￠￡￢―￤")


def text_of(path: str) -> str:
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as stream:
        text = stream.read().decode("utf-8", "ignore")
    if "/man/" in path:  # without the commands of roff
        text = re.sub(r"^[.'].*$", "", text, flags=re.M).replace("\\", "")
        text = re.sub(r"\n{2,}", "\n\n", text)
    return text


def samples(root: str, each: int, seed: int, sizes: list[int]) -> Iterator[tuple[str, str, int, float, bytes, bytes]]:
    """Yields (language, encoding, size, share of damaged bytes, content, content without damage)."""
    rng = random.Random(seed)
    for language, patterns in SOURCES.items():
        found = [sorted(glob.glob(os.path.join(root, pattern))) for pattern in patterns]
        texts = ["\n".join(map(text_of, paths)) for paths in found if paths]
        for encoding in ENCODINGS[language] if texts else ():
            for size in sizes:
                for number in range(each):
                    text = rng.choice(texts)
                    count = size // (2 if language[:2] in ("zh", "ja", "ko") else 1)
                    text = text * (count // len(text) + 1) if size > 1 << 20 else text
                    at = rng.randrange(max(1, len(text) - count))
                    text = text[at : at + count]
                    if encoding == "cp1252":
                        text = text.replace("'", "\u2019")
                    whole = data = text.encode(encoding, "ignore")
                    damage = rng.choice([0.0001, 0.001, 0.003]) if number % 4 == 3 and encoding in _DAMAGED else 0.0
                    if damage * 10 * len(text) > sum(char > "\x7f" for char in text):
                        damage = 0.0  # too much
                    if damage:
                        places = rng.sample(range(len(data)), max(1, int(len(data) * damage)))
                        damaged = bytearray(data)
                        for place in places:
                            damaged[place] = rng.randrange(128, 256)
                        data = bytes(damaged)
                    yield language, encoding, size, damage, data, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root")
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int)
    args = parser.parse_args()
    sizes = [args.size] if args.size else [1000, 3000, 10_000, 50_000, 200_000, 1_000_000]
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "x.txt")
        for language, encoding, size, damage, data, whole in samples(args.root, args.each, args.seed, sizes):
            with open(path, "wb") as stream:
                stream.write(data)
            outcome = "right"
            found = None
            try:
                file, what = InputFile.look(path)
                if what is None:
                    found = file.decided(keep_crlf=True).encoding
                    with file._replace(encoding=found).open() as source:
                        read = source.read().decode("utf-8", "surrogateescape")
                    if damage:  # may turn a character into another, which no reader can notice
                        read = whole.decode(found or "utf-8", "replace")
                    if read.translate(_SAME) != whole.decode(encoding).translate(_SAME):
                        outcome = "wrong" if found or encoding == "utf-8" else "unchanged, with a warning"
                else:
                    outcome = "refused"
            except FormatError as error:
                outcome = "refused"
                found = str(error)
            kind = "UTF-8" if encoding == "utf-8" else "others"
            counts[f"{kind}, {'damaged' if damage else 'whole'}", outcome] += 1
            if outcome != "right":
                print(outcome, language, encoding, size, damage, found)
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind}: {count} {outcome}")


if __name__ == "__main__":
    main()
