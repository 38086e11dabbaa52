"""The commands that the documents print, as a reader would copy them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from workflow_modules import load

PROGRAMS = {"snakemake", "python", "python3", "dvc", "pip", "git", "tail", "rm", "sh", "bash", "."}
PROGRAMS |= {"uv", "conda", "docker", "podman", "ruff", "snakefmt", "pip-audit", "cp", "cat", "cd"}
PROGRAMS |= {"mkdocs"}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_of(page: str) -> Iterator[str]:
    """Commands in a page of Markdown, in its order: lines of code blocks, then code in sentences.

    In a block for a shell every line is one, in another block each that begins with a program;
    lines that end with a backslash go on, and `&&` stands between two. In a sentence a program's
    name alone is no command, but the name of the program.
    """
    for language, block in _FENCE.findall(page):
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        for line in filter(None, map(str.strip, lines)):
            line = re.sub(r"(^|\s+)# .*", "", line)
            if line and (language in ("bash", "sh", "console") or line.split()[0] in PROGRAMS):
                yield from line.split(" && ")
    for code in re.findall(r"`([^`]+)`", _FENCE.sub("", page)):
        words = code.split()
        if len(words) > 1 and words[0] in PROGRAMS:
            yield " ".join(words)


def documents(root: Path) -> list[Path]:
    """Every page that people read: at the top, in docs, and one in folders of files."""
    return [*root.glob("*.md"), *root.glob("*/README.md"), *sorted(root.glob("docs/**/*.md"))]


def printed_commands(root: Path) -> dict[str, list[str]]:
    """Every command of the project's documents and of its site, with the pages that print it."""
    pages = {str(path.relative_to(root)): path.read_text("utf-8") for path in documents(root)}
    with pytest.MonkeyPatch.context() as patch:
        made = load(patch, "pages").PAGES
        pages |= {f"docs/reference/{name}.md": page() for name, page in made.items()}
    found: dict[str, list[str]] = {}
    for name, page in pages.items():
        for command in commands_of(page):
            found.setdefault(command, []).append(name)
    return found
