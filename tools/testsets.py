"""Arrange downloaded test sets as `xsent evaluate` and `xsent-bench --eval` read them: docs/reference/test-sets.md.

    python tools/testsets.py DOWNLOADS DATA/eval

Sets that are not in DOWNLOADS are skipped. The last column says whether a set has the bytes that our figures are of.
"""

import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from xsent.files.atomic import atomic_file

CODES = {  # of the nine languages, in LASER and in FLORES and SIB-200
    "en": "eng_Latn",
    "fr": "fra_Latn",
    "de": "deu_Latn",
    "es": "spa_Latn",
    "it": "ita_Latn",
    "pt": "por_Latn",
    "nl": "nld_Latn",
    "ru": "rus_Cyrl",
    "ja": "jpn_Jpan",
}
OTHERS = [language for language in CODES if language != "en"]
PARTS = ("train", "dev", "test")

Files = dict[str, bytes]  # what is written, by its name in the folder of the set


def tatoeba(downloads: Path) -> Files:
    """LASER has a file for each side; ours have English and the translation with a tab between."""
    files = {}
    for language in OTHERS:
        code = CODES[language][:3]
        folder = downloads / "LASER" / "data" / "tatoeba" / "v1"
        paths = [folder / f"tatoeba.{code}-eng.{side}" for side in ("eng", code)]
        sides = [path.read_text(encoding="utf-8").split("\n") for path in paths]
        pairs = ["\t".join(side.strip() for side in pair) for pair in zip(*sides, strict=True)]
        files[f"en-{language}.tsv"] = "\n".join(pairs).strip().encode() + b"\n"
    return files


def flores(downloads: Path) -> Files:
    """The 1,012 sentences of `devtest`, one file per language."""
    folder = downloads / "flores200_dataset" / "devtest"
    return {f"{language}.txt": (folder / f"{code}.devtest").read_bytes() for language, code in CODES.items()}


def sib200(downloads: Path) -> Files:
    """A folder per language, with the files as they are."""
    folder = downloads / "sib-200" / "data" / "annotated"
    return {
        f"{language}/{part}.tsv": (folder / code / f"{part}.tsv").read_bytes()
        for language, code in CODES.items()
        for part in PARTS
    }


def stsb(downloads: Path) -> Files:
    """The files as they are, without the beginning of their names."""
    folder = downloads / "stsb-multi-mt" / "data"
    names = [f"{language}-{part}.csv" for language in CODES for part in ("dev", "test")]
    return {name: (folder / f"stsb-{name}").read_bytes() for name in names}


SETS: Mapping[str, tuple[Callable[[Path], Files], str]] = {  # with the digest of the files that our figures are of
    "tatoeba": (tatoeba, "be859eba3c3c47ee"),
    "flores": (flores, "b3f6f2b04be5f1ad"),
    "sib200": (sib200, "984a8456c1428151"),
    "stsb": (stsb, "d949ef3dcdd5d421"),
}


def digest(files: Files) -> str:
    """The first digits of the SHA-256 of all files, by name."""
    return sha256(b"".join(files[name] for name in sorted(files))).hexdigest()[:16]


def arrange(downloads: Path, out: Path) -> list[str]:
    """Write the sets that were downloaded; returns a line about each set."""
    lines = []
    for name, (read, measured) in SETS.items():
        try:
            files = read(downloads)
        except FileNotFoundError as error:
            lines.append(f"{name}\tskipped\t{error.filename} is missing")
            continue
        for file, content in files.items():
            (out / name / file).parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(out / name / file) as written:
                written.write(content)
        lines.append(f"{name}\t{len(files)} files\t{'as measured' if digest(files) == measured else 'other bytes'}")
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/testsets.py DOWNLOADS DATA/eval")
    sys.stdout.write("".join(f"{line}\n" for line in arrange(Path(sys.argv[1]), Path(sys.argv[2]))))
