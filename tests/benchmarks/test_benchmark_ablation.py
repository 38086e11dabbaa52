"""The benchmark of ablation: both ways give the same, and a difference is told."""

import pytest
from masked_run import MODEL, masked_inputs

from benchmarks.ablation import all_at_once, check_agreement, head_by_head
from headcount.ablation.masking import single_heads
from headcount.base.errors import HeadcountError
from headcount.data.lines import clean_lines


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """A model, sentences and masks."""
    inputs = masked_inputs(tmp_path_factory.mktemp("benchmark"))
    lines = list(clean_lines(inputs.text / "dev.src"))[:2]
    return inputs.load(), lines, [point.heads for point in single_heads(MODEL.grid)][1::3]


@pytest.mark.slow
def test_all_masks_in_one_search_translate_as_each_alone(task, capsys):
    at_once = all_at_once(*task)
    assert at_once == head_by_head(*task) and len(at_once) == 3
    assert len({tuple(lines) for lines in at_once.values()}) > 1  # masks make a difference
    check_agreement(lambda: at_once, lambda: head_by_head(*task))
    assert "6 translations, 100.000% of them the same" in capsys.readouterr().out


@pytest.mark.slow
def test_other_translations_are_no_match(task):
    other = {heads: ["x", *lines[1:]] for heads, lines in all_at_once(*task).items()}
    with pytest.raises(HeadcountError, match="expected at least 99.9% the same: this is a bug"):
        check_agreement(lambda: all_at_once(*task), lambda: other)
