"""The tutorial, done from its beginning to its end as it stands: its commands and its files."""

import re
from pathlib import Path

import pytest
from printed_commands import commands_of
from project_copy import ROOT, ProjectCopy
from shared_results import own_copy

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
BLOCKS = list(re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
STEPS = [(PAGE[: each.start()].rstrip().rpartition("\n\n")[2], *each.groups()) for each in BLOCKS]
"""Of each block: the paragraph before, its language, its text.

That paragraph names a file last, if the text belongs into one.
"""


def test_every_block_is_a_step():
    assert 2 * len(STEPS) == PAGE.count("```") and len(STEPS) >= 7
    assert {language for _, language, _ in STEPS} == {"bash", "yaml", "python", "text"}


@pytest.mark.slow
def test_the_tutorial_leads_where_it_says(origin, tmp_path):
    project = own_copy(origin, tmp_path)
    said = [_follow(project, *step) for step in STEPS]
    for output, (_, language, block) in zip(said, STEPS[1:], strict=False):
        if language == "text":
            assert set(_lines(block)) <= set(_lines(output))
    plans = [
        text for text, (_, _, block) in zip(said, STEPS, strict=True) if "snakemake -n" in block
    ]
    results = project.folder / "results/my_first"
    table = (results / "tables/headmask_by_kind.csv").read_text().splitlines()
    runs, kinds = {row.split(",")[1] for row in table[1:]}, {row.split(",")[2] for row in table[1:]}
    assert len(runs) == 2 and kinds == {"enc_self", "dec_self", "dec_enc"}
    assert "Mean importance by attention type" in (results / "report.html").read_text()
    assert not re.search(r"^train +", plans[-1], re.M)


def _lines(text: str) -> list[str]:
    """Return the lines of a text with single spaces between their words."""
    return [" ".join(line.split()) for line in text.splitlines()]


def _follow(project: ProjectCopy, before: str, language: str, block: str) -> str:
    """Run the commands of a block, or put it into the file that the text before it names last.

    A block of text is part of the output of the commands before it.
    """
    if language == "text":
        return ""
    if language == "bash":
        return "".join(project.shell(command) for command in commands_of(f"```bash\n{block}```"))
    path = project.folder / Path(re.findall(r"`([\w./]+\.(?:yaml|py))`", before)[-1])
    with path.open("a", encoding="utf-8") as file:
        file.write(block)
    return ""
