"""BLEU and chrF of translations, with their signatures."""

import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from headcount.base.errors import EnvironmentFault, UserError, install, reading
from headcount.base.files import read_json, sha256
from headcount.base.settings.data import SCORED_BY_CHARACTERS, SCORED_BY_EXTRA, two_letters
from headcount.data.lines import clean_lines, references
from headcount.data.words import Tokeniser

Lines = list[str]

SEARCH = ("engine", "beam", "length_penalty", "sentences", "source_truncated", "hit_max_length")


@dataclass(frozen=True)
class Score:
    """One corpus score. Larger is better."""

    metric: str  # bleu, chrf or bleu_tok_lc
    score: float  # points, 0–100
    signature: str


def score_corpus(hypotheses: Lines, targets: Lines, language: str) -> list[Score]:
    """Return cased BLEU, see `bleu_metric`, and chrF. `targets`: lines of a `.tgt`."""
    check_lengths(hypotheses, targets)
    streams = reference_streams(targets)
    scores = []
    for name, metric in (("bleu", bleu_metric(language)), ("chrf", CHRF())):
        score = metric.corpus_score(hypotheses, streams).score
        scores.append(Score(name, score, str(metric.get_signature())))
    return scores


def reference_streams(targets: Lines) -> list[Lines]:
    """Return the lines of a `.tgt` as all first references, all second ones, and so on."""
    rows = [references(line) for line in targets]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise UserError(
                f"scoring: expected {len(rows[0])} references in every line, as in the first, "
                f"found {len(row)} in line {number}; make the text again"
            )
    return [list(stream) for stream in zip(*rows, strict=True)]


def tokenised_bleu(hypotheses: Lines, targets: Lines, words: Callable[[str], list[str]]) -> Score:
    """Return BLEU of lower-cased text in the project's own words, as older papers print it.

    `words` cuts a line. The score equals `multi-bleu.perl` on the same words in lower case, unless
    no n-gram of some length is right: there the script has 0, and sacreBLEU smooths.
    """
    texts = hypotheses, *reference_streams(targets)
    ours, *expected = ([" ".join(words(line)) for line in lines] for lines in texts)
    metric = BLEU(lowercase=True, tokenize="none", force=True)
    score = metric.corpus_score(ours, expected).score
    return Score("bleu_tok_lc", score, f"{metric.get_signature()}|words:own")


def bleu_metric(language: str, streams: list[Lines] | None = None) -> BLEU:
    """Return sacreBLEU's metric for a target language, with the tokeniser of that language.

    Of languages without spaces that sacreBLEU does not know, characters are words. `streams`:
    references, prepared once, without the warning that a text looks tokenised.
    """
    code = two_letters(language)
    try:
        words = {"tokenize": "char"} if code in SCORED_BY_CHARACTERS else {}
        force = streams is not None
        return BLEU(trg_lang=code, references=streams, force=force, **words)
    except (RuntimeError, AssertionError) as fault:  # no package; another release's dictionary
        if code not in SCORED_BY_EXTRA:
            raise
        reason = str(fault).strip().splitlines()[0].rstrip(".")
        raise EnvironmentFault(
            f"target language {language!r}: no tokeniser for BLEU ({reason}); {install(code)}"
        ) from None


def check_lengths(hypotheses: Lines, targets: Lines) -> None:
    """Raise UserError unless there is one hypothesis for each reference, and at least one."""
    if len(hypotheses) != len(targets) or not targets:
        raise UserError(
            f"scoring: expected one translation per reference line, found {len(hypotheses)} "
            f"translations and {len(targets)} references; translate the test set again"
        )


def score_files(
    tests: list[str],
    translations: list[Path],
    targets: list[Path],
    facts: list[Path],
    tokeniser: Tokeniser,
) -> list[dict]:
    """Return scores of test sets in rows: test_set, metric, score, signature, `SEARCH`."""
    if not len(tests) == len(translations) == len(targets) == len(facts):
        raise UserError(
            f"scoring: expected one file of each kind per test set, found {len(tests)} names, "
            f"{len(translations)} translations, {len(targets)} references, {len(facts)} facts"
        )
    rows = []
    for test, hypotheses, target, about in zip(tests, translations, targets, facts, strict=True):
        search = search_of(hypotheses, about)
        texts = list(clean_lines(hypotheses)), list(clean_lines(target))
        scores = score_corpus(*texts, tokeniser.language)
        scores.append(tokenised_bleu(*texts, tokeniser.split))
        rows += [{"test_set": test, **asdict(score), **search} for score in scores]
    return rows


def doubts(scores: list[dict], translations: list[Path], targets: list[Path]) -> list[str]:
    """Return a warning for every test set whose translations hardly fit the references."""
    warnings = []
    rows = [row for row in scores if row["metric"] == "bleu"]
    for row, *files in zip(rows, translations, targets, strict=True):
        ours, theirs = map(_script, files)
        doubt = f"BLEU is {row['score']:.2f}, under 1" if row["score"] < 1 else ""
        if not doubt and ours and theirs and ours != theirs:
            doubt = f"translations are mostly in {ours} letters, references in {theirs}"
        if doubt:
            advice = "is the model trained enough, and does it translate in the pair's direction?"
            warnings.append(f"{row['test_set']}: {doubt}; {advice}")
    return warnings


def _script(path: Path) -> str:
    """Return the script of most letters of a text, such as LATIN. Empty without letters."""
    letters = filter(str.isalpha, path.read_text(encoding="utf-8"))
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    kana = scripts.pop("HIRAGANA", 0) + scripts.pop("KATAKANA", 0)
    scripts["CJK"] += kana + scripts.pop("KATAKANA-HIRAGANA", 0)
    return max(scripts, key=scripts.__getitem__)


def search_of(translations: Path, about: Path) -> dict[str, Any]:
    """Return the search settings of translations. Raises UserError unless facts describe them."""
    with reading(about, "scripts/translate.py"):
        known = read_json(about)
        search, expected = {key: known[key] for key in SEARCH}, known["sha256"]
        search["engine"] += f" {known['compute_type']}" if "compute_type" in known else ""
    if sha256(translations) != expected:
        raise UserError(
            f"{translations}: not what the model wrote; its SHA-256 is not the one in {about}. "
            "Delete both and translate the test set again"
        )
    return search
