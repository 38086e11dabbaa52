"""The page of the study, from small tables of kept runs; every number is worked out beside it."""

from importlib.resources import files

import pandas as pd
import pytest
from script_runner import ROOT

from headcount.base.errors import UserError
from headcount.findings.report.study.intervals import above, some_below
from headcount.findings.report.study.page import write_study

LOCKED = ["run", "seed", "heads", "n", "held", "seeds", "seeds_locked", "locked_ever"]
LOCKED += [
    "locked_at_end",
    "locked_from",
    "locked_longest",
    "locked_slope",
    "others_slope",
    "locked_slope_ratio",
]
LOCKED += ["others_slope_ratio", "place_both", "place_expected", "place_p"]
LOCKED += ["held_both", "held_expected", "held_p"]
BOUNDS = ["locked_ever_low", "locked_ever_high", "locked_slope_low", "locked_slope_high"]
SLOPES = [2.0, 0.0, 0.96, 0.25]
HELD = "impt-6-held60"
COST = ["rule", "jobs", "seconds", "cpu_seconds"]
VARIANTS = ["test_set", "statistic", "run", "reference", "value", "low", "high", "p", "seeds"]
CONFIG = ROOT / "config"


def row(run, seed, held, ever, place, foretold):
    """Of a training, or without a seed over two."""
    seeds = [2, 2] if seed is None else [1, 1]
    measured = [25, 400, *SLOPES] if ever else [None] * 6
    return [run, seed, 48, 6, held, *seeds, ever, ever / 2, *measured, *place, *foretold]


def locked_heads(run="impt-6"):
    """Eight, three of harm: of the decoder's second and first layer five and two, one other."""
    rows = [(run, "dec_self", 1, slope) for slope in (1.0, -1.0, -1.0, -1.0, -1.0)]
    rows += [(run, "dec_self", 0, 0.5), (run, "dec_self", 0, 0.5), (run, "enc_self", 0, -0.5)]
    rows.append(("baseline", None, None, None))
    return pd.DataFrame(rows, columns=["run", "kind", "layer", "slope_mean"])


def locked_table():
    none, empty = [None] * 3, [None] * 3
    rows = [
        row("baseline", 4, 0, 0, none, empty),
        row("impt-6", 4, 0, 8, [2, 4 / 3, 0.4], empty),
        row("impt-6", 5, 0, 0, none, empty),
        # Over seeds means of what is known: 4 heads, but of the layer 2, as of the one that locks.
        row("impt-6", None, 0, 4, [2, 4 / 3, 0.4], empty),
        row(HELD, 4, 60, 4, none, [1, 0.5, 0.4]),
        row(HELD, None, 60, 4, none, [1, 0.5, 0.04]),
    ]
    table = pd.DataFrame(rows, columns=LOCKED)
    return table.assign(**dict.fromkeys(BOUNDS)).assign(locked_ever_low=1.5, locked_ever_high=6.5)


def variants_table():
    rows = [
        ("dev", "dev_loss", "baseline", None, 0.25, None, None, None, 2),
        ("dev", "dev_loss", "impt-6", None, 0.5, None, None, None, 1),
        ("dev", "dev_loss", "impt-6", "baseline", 0.25, 0.1, 0.4, 0.01, 1),
        ("mean", "bleu", "impt-6", "baseline", -1.5, -2.0, -1.0, 0.01, 1),
        (None, "locked_ever", "impt-6", None, 4.5, None, None, None, 1),
        (None, "locked_ever", "impt-6-rest3", None, 0.0, None, None, None, 1),
        (None, "locked_ever", "impt-6-p0.5", None, 0.0, None, None, None, 1),
        ("dev", "dev_loss", "random-6-rest3", "random", -0.02, -0.03, -0.01, 0.01, 2),
        (None, "locked_ever", "baseline", None, 0.0, None, None, None, 2),
        (None, "harmful_share", "impt-6", None, 0.875, None, None, None, 1),
        (None, "heads_harmful_share", "impt-6", None, 0.75, None, None, None, 1),
    ]
    table = pd.DataFrame(rows, columns=VARIANTS).assign(pair="synthetic.en-art")
    return table.assign(against=table["reference"].replace("random", "random-6"))


def cost(seconds, processor):
    return pd.DataFrame([("train", 2, 9, 9), ("all", 7, seconds, processor)], columns=COST)


def plant(folder, experiment, **tables):
    (folder / experiment / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(folder / experiment / "tables" / f"{name}.csv", index=False)


@pytest.fixture
def kept(tmp_path):
    plant(tmp_path, "collapse", headmask_locked=locked_table(), cost=cost(7200, 5400))
    plant(tmp_path, "collapse", headmask_locked_heads=locked_heads())
    plant(tmp_path, "headmask_variants", headmask_variants=variants_table(), cost=cost(1800, 0))
    (tmp_path / "collapse/kept/synthetic.en-art").mkdir(parents=True)
    for name in ("impt-6.seed4.tar.xz", "impt-6.seed5.tar.xz", "README.md"):
        (tmp_path / "collapse/kept/synthetic.en-art" / name).touch()
    return tmp_path


def test_prose_of_the_template_is_wrapped():
    """Rows of a table are one line each, and so is a picture."""
    template = files("headcount.findings.report.study").joinpath("page.md")
    lines = template.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith(("|", "!["))] == []


def page_of(kept):
    write_study(kept, kept / "study.md", CONFIG)
    return kept.joinpath("study.md").read_text()


def test_the_page_has_what_the_tables_say(kept):
    page = page_of(kept)
    prose = page.replace("\n", " ")
    assert "`collapse`: 4 trainings on the generated corpus, seeds 4, 5; 2 encoder and 2" in prose
    assert "48 heads in all, pre-norm, dropout 0; 600 updates at most, at a peak rate of" in prose
    # Two archives of the baseline's and 14 runs' three seeds.
    assert "Kept so far: 2 of 45 trainings that its settings plan." in prose
    assert "those of Sun et al. have 6 encoder and 6 decoder layers of width 512 with 144" in prose
    assert (
        "`headmask_variants`: 3 trainings on the generated" in prose
    )  # two of the baseline, one of impt-6
    # Two of the eight heads that were locked in; by chance 4/3 of eight, a sixth.
    where = "25 % (by chance 17 %; p 0.40)"
    cells = "4.0 / 2.0 | 5 dec layer 1, 2 dec layer 0, 1 enc layer 0 | 25 / 400 | 3 of 8"
    cells += " | +2.00 / +0.00 | 0.96 / 0.25"
    assert f"| impt-6 | 2 of 2 | {cells} | {where} | – |" in page
    share = "25 % are of it. Heads of the decoder's first self-attention are locked in more often "
    share += "than by chance in 0 of 1 runs (p < 0.05 after correction for their number, not in "
    told = "`impt-6`); those of other layers may be, too. These runs have the initial weights"
    assert f"{share}{told}" in page
    assert "| 60 | 1.0 of 6 | 0.5 | 0.040 |" in page
    assert "more often than chance gives after holds of 60 updates" in page
    difference = "+0.250 (+0.100 to +0.400)"
    bleu = "-1.50 (-2.00 to -1.00)"
    assert f"| impt-6 | 0.500 | {difference} | – | {bleu} | – | 4.5 | 0.88 / 0.75 |" in page
    told = "Heads were locked in by `impt-6`; never by `impt-6-p0.5`; heads that rest, those of "
    assert f"{told}`impt-6-rest3`, cannot be." in page
    told = "Rests alone change dev loss by -0.020 (-0.030 to -0.010) nats (`random-6-rest3` to "
    assert f"{told}`random-6`)." in page
    assert "for no run; above it for `impt-6`." in page
    told = "equal time is fewer updates; after as many updates dev loss is above that of the "
    assert f"{told}baseline, with all of its interval, for `impt-6`." in page
    assert "![" not in page


def test_what_is_not_finished_is_named_and_left_out(kept):
    page = page_of(kept)
    told = page.replace("\n", " ")
    assert (
        "Not finished yet: locked heads on fresh seeds (`collapse_fresh`), locked heads in the "
        "paper's number of layers (`collapse_deep`), when masking helps BLEU (`lowdata`), masks "
        "with dropout, until dev loss turns (`lowdata_long`), heads with a function (`roles`), "
        "Multi30k, English to German (`multi30k_seeds`)." in told
    )
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles[1:] == [
        "## Question",
        "## Terms",
        "## Which heads are locked in",
        "## What else may be masked",
        "## Hours",
    ]
    (kept / "collapse").rename(kept / "other")
    assert "which heads Impt-N locks in (`collapse`)," in page_of(kept)


def test_hours_are_of_kept_runs(kept):
    page = page_of(kept)
    # Two archives, 5,400 s of the processor in 7,200 s; none recorded of the others in 1,800 s.
    assert "| [collapse](collapse.md#the-runs) | 2 | 7 | 1.5 | 2.0 |" in page
    assert "| [headmask_variants](headmask_variants.md#the-runs) | 0 | 7 | – | 0.5 |" in page


@pytest.mark.parametrize(
    ("low", "high", "slope", "verdict"),
    [
        (1.0, 3.0, "+2.00 (+1.00 to +3.00) nats", "holds"),
        (-1.0, 5.0, "+2.00 (-1.00 to +5.00) nats", "undecided"),
        (None, None, "+2.00 nats", "undecided"),
    ],
)
def test_the_first_sentence_says_whether_heads_are_of_harm(kept, low, high, slope, verdict):
    table = locked_table().assign(locked_slope_low=low, locked_slope_high=high)
    plant(kept, "collapse", headmask_locked=table)
    begun = "2 of 2 trainings of `impt-6` locked heads in, 4.0 (1.5 to 6.5) on average"
    told = f"{begun}; that they harm, to first order: {verdict}, mean slope {slope}."
    page = page_of(kept)
    assert f"- **Which heads Impt-N locks in.** {told}\n" in page
    begun += ", 2.0 of them at the end (in all 5 dec layer 1, 2 dec layer 0, 1 enc layer 0); their "
    begun += f"mean slope while they were is {slope}, above 0 in 3 of 8 (that the mean is, harm to "
    assert f"- {begun}first order: {verdict}).\n" in page


def test_impt_n_stands_for_the_papers_share_of_heads(kept):
    rows = [row("impt-1", None, 0, 0, [None] * 3, [None] * 3)]
    rows[0][3], rows[0][6] = 1, 0  # of 48 heads, and no training locked one; 6 are an eighth
    both = pd.concat([pd.DataFrame(rows, columns=LOCKED), locked_table()])
    plant(kept, "collapse", headmask_locked=both)
    assert "trainings of `impt-6` locked" in page_of(kept)
    plant(kept, "collapse", headmask_locked=both[both["run"] != "impt-6"])
    # A run that locks nothing has no slope: its sentence ends before that.
    told = "locks in.** 0 of 2 trainings of `impt-1` locked heads in, 0.0 on average.\n"
    assert told in page_of(kept)


def test_verdicts_from_intervals():
    assert above(0.1, 0.3) == "holds"
    assert above(-0.3, -0.1) == "does not hold"
    assert above(-0.1, 0.3) == above(float("nan"), float("nan")) == "undecided"

    def verdict(*rows):
        return some_below(pd.DataFrame(rows, columns=["low", "high", "p"]))

    assert verdict() == "undecided"
    assert verdict((-3, -1, 0.02), (-1, 1, 0.9)) == "holds"  # 2 · 0.02 = 0.04
    assert verdict((-3, -1, 0.03), (-1, 1, 0.9)) == "undecided"  # 2 · 0.03 = 0.06
    assert verdict((1, 3, 0.01), (0.1, 1, 0.04)) == "does not hold"
    assert verdict((1, 3, 0.01), (-1, 1, 0.9)) == "undecided"
    assert verdict((None, None, None)) == "undecided"  # of one seed


def test_ways_to_choose_in_short(kept):
    page = page_of(kept)
    assert (
        "- **What else may be masked.** Dev loss is above that of the baseline in 1 of 1 ways to "
        "choose, in 1 with all of the interval; the lowest, `impt-6`, differs by +0.250 (+0.100 to "
        "+0.400) nats and -1.50 (-2.00 to -1.00) BLEU.\n" in page
    )
    assert (
        "- That some way to choose lowers dev loss below that of the baseline: does not hold; the "
        "lowest of 1, `impt-6`, differs by +0.250 (+0.100 to +0.400) nats.\n- No run is compared "
        "with the same N at random.\n" in page
    )
    # The verdict names the run that leaves it open, and the short one what stands beside it.
    rows = [
        ("dev", "dev_loss", "impt-3", reference, *numbers, 1)
        for reference, numbers in (
            ("baseline", (0.125, -0.1, 0.35, 0.2)),
            ("random", (-0.25, -0.6, 0.1, 0.2)),
        )
    ]
    more = pd.DataFrame(rows, columns=VARIANTS).assign(pair="synthetic.en-art", against="random-3")
    plant(kept, "headmask_variants", headmask_variants=pd.concat([variants_table(), more]))
    page = page_of(kept)
    assert (
        "below that of the baseline: undecided (open for `impt-3`); the lowest of 2, `impt-3`, "
        "differs by +0.125 (-0.100 to +0.350) nats.\n" in page
    )
    lowest = "the lowest, `impt-3` (to `random-3`), differs by -0.250 (-0.600 to +0.100) nats and "
    assert f"in 0 of 1 ways to choose, in 0 with all of the interval; {lowest}– BLEU." in page
    two = pd.concat([variants_table(), variants_table().assign(pair="other.en-de")])
    plant(kept, "headmask_variants", headmask_variants=two)
    with pytest.raises(UserError, match="expected one pair.*found synthetic.en-art, other.en-de"):
        write_study(kept, kept / "study.md", CONFIG)


def test_a_hold_that_chance_explains_and_a_picture(kept):
    held = locked_table()
    plant(kept, "collapse", headmask_locked=held.assign(held_p=held["held_p"].replace(0.04, 0.4)))
    (kept / "collapse/headmask_locked_fig.png").write_bytes(b"png")
    write_study(kept, kept / "elsewhere" / "study.md", CONFIG)
    page = (kept / "elsewhere/study.md").read_text()
    assert "are not seen to stay masked more often than chance gives (p at least 0.05" in page
    assert "](collapse/headmask_locked_fig.png)" in page
    assert (kept / "elsewhere/collapse/headmask_locked_fig.png").read_bytes() == b"png"


def test_collapsed_trainings_are_marked_wherever_their_numbers_stand(kept):
    failed = [("baseline", 0, "no"), ("impt-6", 6, "yes"), ("impt-6", 6, "yes")]
    table = pd.DataFrame(failed, columns=["run", "n", "collapsed"])
    table = table.assign(top_group_delta=[-30.0, 10.0, 20.0])
    plant(kept, "collapse", headmask_collapse=table)
    plant(kept, "headmask_variants", headmask_collapse=table.assign(collapsed="no"))
    page = page_of(kept)
    assert "| impt-6 (2 of 2 collapsed) | 2 of 2 | 4.0 / 2.0 | 5 dec layer 1" in page
    assert page.count("Trainings that collapsed: `impt-6` 2 of 2.") == 1
    assert page.count("trainings of `impt-6` (2 of 2 collapsed) locked") == 2  # in short, answer
    assert "| impt-6 | 0.500 |" in page and page.count("No training collapsed.") == 1
    # Of 10 and 20: 15, standard error 5, t 12.7062; one training has no interval.
    assert "changes BLEU by: `baseline` -30.0, `impt-6` +15.0 (-48.5 to +78.5)." in page


def test_tables_that_are_not_there(kept):
    (kept / "headmask_variants/tables/headmask_variants.csv").unlink()
    with pytest.raises(UserError, match="kept.py page headmask_variants"):
        write_study(kept, kept / "study.md", CONFIG)


def test_of_many_layers_the_last_are_counted_together(kept):
    """Heads of six layers: eight of the first four, and one of each of two others."""
    many = [("dec_self", 0)] * 3 + [("dec_self", 1)] * 2 + [("dec_enc", 0)] * 2 + [("dec_enc", 1)]
    told = "3 dec layer 0, 2 enc–dec layer 0, 2 dec layer 1, 1 enc–dec layer 1, "
    for others, last in (
        ([("enc_self", 0)], "1 enc layer 0"),
        ([("enc_self", 0), ("enc_self", 1)], "2 in 2 other layers"),
    ):
        heads = pd.DataFrame(many + others, columns=["kind", "layer"])
        heads = heads.assign(run="impt-6", slope_mean=1.0)
        plant(kept, "collapse", headmask_locked_heads=heads)
        assert f"| {told}{last} |" in page_of(kept)
