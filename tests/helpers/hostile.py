"""Files of strangers: real ones of every format, changes to them, and the code that reads them."""

import bz2
import gzip
import io
import json
import lzma
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from headcount.base.addresses import HeadGrid
from headcount.base.ending import _MISNAMED, _REFUSED
from headcount.base.errors import HeadcountError, lacks_memory
from headcount.base.files import sha256
from headcount.base.folders import WEIGHTS
from headcount.base.head_values import read_head_list, write_head_values
from headcount.base.settings.corpora import load_corpora
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.pretrained import load_models
from headcount.data.fetching.download import fetch_corpus
from headcount.data.lines import FoundText
from headcount.data.manifest import find_text
from headcount.data.pairs import read_sentences
from headcount.data.trees import read_trees
from headcount.data.word_links.links import linked_pair
from headcount.scoring.segments import read_segments

TOKEN = re.compile(rb"-?\d[\d.]*|\"[^\"]*\"|\w+")
ODD = [b"true", b'{"a": 1}', b"[[1, 2], [3]]", b"-0.5", b"1000000", b'"relu"', b'"F64"', b"-1",
       b"\0", b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"9" * 5000, b"1e999", b"[" * 3000, b"{",
       b'"', b",", b"\t", b"\n", b"\r", b"%", b": ", b"- ", b"null", b"NaN", b"[]", b'"F8_E4M3"',
       b"x" * 200_000, b"<hi>" * 3000, b"\x80\x80\x80\x80\x10", b"../x", b"99999999"]  # fmt: skip
SHARE = st.floats(0, 1, exclude_max=True)
EDIT = st.tuples(
    st.sampled_from([0, 1, 2, 3, 4, 5, 5, 5]),
    SHARE,
    SHARE,
    st.sampled_from(ODD) | st.binary(max_size=8),
)
EDITS = st.lists(EDIT, max_size=4)
"""Changes to a file: kind, place, length, and new bytes."""


def edited(content: bytes, edits: Sequence[tuple[int, float, float, bytes]]) -> bytes:
    """Bytes with parts of them cut out, repeated, pushed apart, replaced or flipped."""
    for kind, place, share, new in edits:
        start = int(place * len(content))
        end = start + 1 + int(share**6 * len(content))
        part, flip = content[start:end], (new or b"\1")[0]
        flipped = bytes(byte ^ flip for byte in part)
        if kind == 5 and (token := TOKEN.search(content, start)):
            start, end = token.span()
        middle = (b"", part * 3, new + part, new, flipped, new)[kind]
        content = content[:start] + middle + content[end:]
    return content


def changed(name: str, content: bytes, edits: Sequence[tuple[int, float, float, bytes]]) -> bytes:
    """As `edited`. Half of all weights and archives get fitting sizes and sums after it."""
    if len(edits) % 2 and name.endswith(".safetensors"):
        size = int.from_bytes(content[:8], "little")
        header = edited(content[8 : 8 + size], edits)
        return len(header).to_bytes(8, "little") + header + content[8 + size :]
    kind, _, packed = name.partition("-")
    if packed == "w.tar":
        return summed(edited(content, edits))
    if len(edits) % 2 and packed in PACKED:
        return PACKED[packed](edited(TEXTS[kind].encode(), edits))
    return edited(content, edits)


def summed(content: bytes) -> bytes:
    """An archive whose headers have the sums of their bytes."""
    blocks = [content[n : n + 512] for n in range(0, len(content), 512)]
    for number, b in enumerate(blocks):
        if b[257:262] == b"ustar" and len(b) == 512:
            total = sum(b[:148]) + 256 + sum(b[156:])
            blocks[number] = b[:148] + b"%06o\0 " % total + b[156:]
    return b"".join(blocks)


def tried(read: Callable[[Path, str], object], folder: Path, name: str) -> bool:
    """Return whether reading worked. Whatever is no fault in plain words is raised."""
    try:
        read(folder, name)
    except HeadcountError:
        return False
    except OSError as fault:
        if fault.errno not in _MISNAMED | _REFUSED.keys():
            raise
    except RuntimeError as fault:
        if not lacks_memory(fault):
            raise
    return True


TEXT = "".join(f"line {n}\tzweite {n}\n" for n in range(40))
SEGMENTS = "".join(f"<seg id='{n}'>a <hi>b</hi> &amp; c {n}</seg>\n" for n in range(9))
TMX = "<tu><tuv xml:lang='de'><seg>ein <ph>x</ph> Wort</seg></tuv><tuv xml:lang='en'/></tu>" * 9
TEXTS = {
    "plain": TEXT, "moses": TEXT.replace("l", "&lt;"), "tsv": TEXT, "csv": TEXT.replace("\t", ","),
    "sgm": f"<doc docid='d'>{SEGMENTS}</doc>", "tmx": f"<tmx><body>{TMX}</body></tmx>",
    "wmt": f"<dataset><doc id='d'><src lang='de'>{SEGMENTS}</src></doc></dataset>", "ted": TEXT,
}  # fmt: skip


def tarred(content: bytes, mode: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> bytes:
    """An archive with a member d/t, and others that are links, devices and lie outside."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, **more) as archive:
        for name, form in (
            *(("../out", tarfile.REGTYPE), ("/abs", tarfile.SYMTYPE), ("dev", tarfile.CHRTYPE)),
            *(("d/" + "n" * 150, kind), ("d/t", kind)),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = form, "/etc/passwd", len(content)
            archive.addfile(info, io.BytesIO(content) if form == tarfile.REGTYPE else None)
    return out.getvalue()


def zipped(content: bytes, method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("../out", content)
        archive.writestr("d/t", content)
    return out.getvalue()


PACKED = {
    "t.gz": gzip.compress, "t.bz2": bz2.compress, "t.xz": lzma.compress, "t.txt": bytes,
    "t.tar": lambda c: tarred(c, "w"), "u.tar": lambda c: tarred(c, "w", tarfile.LNKTYPE),
    "v.tar": lambda c: tarred(c, "w", format=tarfile.PAX_FORMAT, pax_headers={"a": "b" * 99}),
    "w.tar": lambda c: tarred(c, "w", format=tarfile.PAX_FORMAT, pax_headers={"a": "b" * 9}),
    "t.tgz": lambda c: tarred(c, "w:gz"), "t.tar.gz": lambda c: tarred(c, "w:gz"),
    "t.zip": lambda c: zipped(c, 8), "u.zip": lambda c: zipped(c, 14),
    "v.zip": lambda c: zipped(c, 0),
}  # fmt: skip


def write_archives(folder: Path) -> None:
    for kind, text in TEXTS.items():
        for name, pack in PACKED.items():
            (folder / f"{kind}-{name}").write_bytes(pack(text.encode()))


def read_archive(folder: Path, name: str) -> None:
    kind = name.split("-")[0]
    packed = name.endswith((".zip", ".tar", ".tgz", ".tar.gz"))
    side = {"path": str(folder / name), "format": kind} | ({"member": "d/t"} if packed else {})
    side |= {"column": 2} if kind in ("tsv", "csv") else {}
    (folder / "en.txt").write_text("other\n")
    entry = {"splits": {"train": {"de": side, "en": {"path": str(folder / "en.txt")}}}}
    fetch_corpus("c", entry, folder / "raw", folder / "lock.yaml")
    sum(1 for _ in read_sentences(find_text(folder / "raw/manifest.json", "train", "de")))


def write_yaml(folder: Path) -> None:
    shutil.copytree("config", folder, dirs_exist_ok=True, ignore=lambda *_: ["README.md"])


def read_yaml(folder: Path, name: str) -> None:
    if name in ("corpora.yaml", "models.yaml"):
        (load_corpora if name == "corpora.yaml" else load_models)(folder / name)
    else:
        load_experiment(name.removesuffix(".yaml"), folder)


GRID = HeadGrid({"enc_self": (3, 2), "dec_self": (1, 3), "dec_enc": (2, 3)})
ROWS = "".join(f"{n}\tw{n}\t_\tX\t_\t_\t{n - 1}\tdep\t_\t_\n" for n in range(1, 6))


def write_texts(folder: Path) -> None:
    (folder / "heads.txt").write_text("# masked\nenc_self.0.2\ndec_enc.1.0 # why\n")
    write_head_values(folder / "heads.csv", GRID, {"gate": np.linspace(0, 1, GRID.size)})
    trees = (
        f"# sent_id = 1\n# text = w1 w2\n1-2\tw\t_\tX\t_\t_\t_\t_\t_\t_\n{ROWS}\n# x = y\n{ROWS}\n"
    )
    (folder / "trees.conllu").write_text(trees)
    (folder / "links.talp").write_text("0-0 1p2 2-1\n\n0?0\n")
    (folder / "scores.csv").write_text("sentence,score\n1,0.5\n2,0.25\n3,1e-3\n")
    segments = [{"mt": line, "src": "s", "COMET": 0.5} for line in "abc"]
    (folder / "scores.json").write_text(json.dumps({"system": segments}))
    pairs = ({"sentence1": "a", "sentence2": "b", "gold_label": x} for x in "nec-")
    (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in pairs))


def read_text(folder: Path, name: str) -> None:
    from headcount.data.entailment import read_pairs
    from headcount.store.kept_heads import read_gates

    path = folder / name
    words = [[["a"]] * 4, [["b"]] * 4]

    {
        "heads.txt": lambda: read_head_list(path, GRID),
        "heads.csv": lambda: read_gates(path, GRID),
        "trees.conllu": lambda: list(read_trees(FoundText(path))),
        "links.talp": lambda: [linked_pair(x, words, "x") for x in FoundText(path).lines()],
        "scores.csv": lambda: read_segments(path, ["a", "b", "c"]),
        "scores.json": lambda: read_segments(path, ["a", "b", "c"]),
        "pairs.jsonl": lambda: read_pairs(FoundText(path)),
    }[name]()


def write_model(folder: Path) -> None:
    from learnt_model import learnt
    from small_run import segment

    bpe = segment(folder / "work")
    (folder / "m").mkdir()
    learnt(bpe, folder / "m", 2, updates=30)
    for path in (*(folder / "m/model").iterdir(), *bpe.glob("*.codes"), *bpe.glob("*.vocab")):
        shutil.copy(path, folder)
    shutil.copy(bpe / "segmentation.json", folder)
    for name in ("m", "work"):
        shutil.rmtree(folder / name)


def read_model(folder: Path, name: str) -> None:
    from headcount.base.settings.decode import DecodeSettings
    from headcount.search.translation import open_own_search, translate_lines
    from headcount.store.model_folder import ModelFolder

    if name != "model.json":
        facts = json.loads((folder / "model.json").read_text())
        facts["sha256"] = {WEIGHTS: sha256(folder / WEIGHTS)}
        for key, end in (("vocabularies", "vocab"), ("codes", "codes")):
            facts[key] = {side: sha256(folder / f"{side}.{end}") for side in ("src", "tgt")}
        (folder / "model.json").write_text(json.dumps(facts))
    model = ModelFolder(folder)
    search = open_own_search(model, model.pair(None), (), DecodeSettings(beam=2))
    translate_lines(search, ["Eno red", "x" * 30])


def write_pretrained(layout: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        from small_tokenizers import write_small, write_text

        write_small(layout, folder / "m", write_text(folder / "text"))
        shutil.copytree(folder / "m", folder, dirs_exist_ok=True)
        shutil.rmtree(folder / "m")
        (folder / "text").unlink()

    return write


def read_pretrained(codes: tuple[str | None, str | None]) -> Callable[[Path, str], None]:
    def read(folder: Path, name: str) -> None:
        from headcount.library.model import import_pretrained

        out = folder.parent / f"{folder.name}-out"
        model = import_pretrained(folder, "en", "de", out, codes, "cpu")
        model.translate(["the ma köl", "x" * 30])

    return read


def write_pieces(folder: Path) -> None:
    import sentencepiece
    from tokenizers import SentencePieceUnigramTokenizer

    (folder / "text").write_text(TEXT)
    how = {"input": str(folder / "text"), "vocab_size": 30, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(model_prefix=str(folder / "m"), **how)
    tokenizer = SentencePieceUnigramTokenizer()
    tokenizer.train([str(folder / "text")], 30, show_progress=False, unk_token="<unk>")
    tokenizer.save(str(folder / "tokenizer.json"))
    for name in ("text", "m.vocab"):
        (folder / name).unlink()


def read_pieces(folder: Path, name: str) -> None:
    from headcount.data.sentencepieces import TOKENIZER_UNIT, UNIT, Marks, make_pieces
    from headcount.data.vocabulary import Vocabulary

    unit = UNIT if name == "m.model" else TOKENIZER_UNIT
    model = (folder / name).read_bytes()
    pieces = make_pieces(unit, "en", model, Vocabulary([]), Marks())
    pieces.words(pieces.pieces("line 1 ﬁ\u0301 zweite"))


FORMATS = {
    "pieces": (write_pieces, read_pieces),
    "archives": (write_archives, read_archive),
    "yaml": (write_yaml, read_yaml),
    "texts": (write_texts, read_text),
    "model": (write_model, read_model),
    "marian": (write_pretrained("marian"), read_pretrained((None, "deu"))),
    "nllb_json": (write_pretrained("nllb_json"), read_pretrained(("eng_Latn", "deu_Latn"))),
    "bart_json": (write_pretrained("bart_json"), read_pretrained((None, None))),
}
