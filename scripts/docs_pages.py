"""Pages of the documentation site that lie elsewhere, or are made: a hook of MkDocs.

The README is its first page. Files of the repository to which pages link are a part of the site,
as texts, so that it is whole without a network; links to folders are only their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
TOP: Final = {"README.md": "index.md", "CONTRIBUTING.md": "", "CHANGELOG.md": ""}
"""Pages above the folder of the documentation, and what they are called where that differs."""
LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
EXAMPLE: Final = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
ITEM: Final = re.compile(r"([-*]|[0-9]+\.) ")
DECISIONS: Final = "decisions"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to, and the pages that lie elsewhere."""
    for name, called in TOP.items():
        text = (ROOT / name).read_text()
        files.append(File.generated(config, called or name, content=text))
    files.append(File.generated(config, f"{DECISIONS}/index.md", content=list_decisions()))
    for page in [*files.documentation_pages()]:
        for path in linked_files(page.src_uri, page.content_string):
            if files.get_file_from_path(shown_as(path)) is None:
                content = (ROOT / path).read_bytes()
                files.append(File.generated(config, shown_as(path), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links lead to where things are in the site, and lists and tables be read as meant."""
    here = page.file.src_uri
    return "".join(
        piece.replace("\\|", "|") if is_example else LINK.sub(lambda one: changed(one, here), piece)
        for piece, is_example in pieces("\n".join(with_lists(markdown)))
    )


def list_decisions() -> str:
    """A page with the titles of all decisions."""
    lines = ["# Decisions", "", "What was decided, and why; the newest last.", ""]
    for path in sorted((ROOT / "docs" / DECISIONS).glob("0*.md")):
        title = path.read_text().partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines)


def with_lists(markdown: str) -> Iterator[str]:
    """The lines, with lists as MkDocs wants them: an empty line before, four blanks for each level.

    Elsewhere a list may follow a line of text at once, and two blanks are enough.
    """
    before, is_example, is_list = "", False, False
    for line in markdown.split("\n"):
        is_example ^= line.lstrip().startswith("```")
        text = line.lstrip(" ")
        is_item = not is_example and ITEM.match(text) is not None
        if is_item and not is_list and before:
            yield ""
        is_list = is_item or (is_list and (line.startswith(" ") or not line))
        blanks = len(line) - len(text)
        yield " " * blanks + line if is_list and not is_example else line
        before = line


def pieces(markdown: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is an example, in which links are none."""
    end = 0
    for example in EXAMPLE.finditer(markdown):
        yield markdown[end : example.start()], False
        yield example[0], True
        end = example.end()
    yield markdown[end:], False


def linked_files(page: str, markdown: str) -> Iterator[str]:
    """The files of the repository, other than pages and their pictures, to which a page links."""
    for piece, is_example in pieces(markdown):
        for link in () if is_example else LINK.finditer(piece):
            path = path_of(page, link[3])
            is_outside = path is not None and in_site(path) is None
            if path is not None and is_outside and (ROOT / path).is_file():
                yield path


def path_of(page: str, link: str) -> str | None:
    """Where in the repository a link of a page leads; None: elsewhere."""
    if re.match(r"[a-z]+:", link):
        return None
    name = next((one for one, called in TOP.items() if page == (called or one)), f"docs/{page}")
    return normpath(str(PurePosixPath(name).parent / link))


def in_site(path: str) -> str | None:
    """What a page or a picture of the documentation is called in the site."""
    if path in TOP:
        return TOP[path] or path
    if path == f"docs/{DECISIONS}":
        return f"{DECISIONS}/index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def shown_as(path: str) -> str:
    """What a file of the repository is called in the site: browsers show texts and pictures."""
    is_picture = path.endswith((".png", ".svg"))
    return f"files/{path}" if is_picture else f"files/{path}.txt"


def changed(link: re.Match[str], page: str) -> str:
    """A link, as it is written in the site."""
    path = path_of(page, link[3])
    if path is None:
        return link[0]
    to = in_site(path)
    if to is None:
        if not (ROOT / path).is_file():
            return link[2]
        to = shown_as(path)
    where = relpath(to, str(PurePosixPath(page).parent))
    return f"{link[1]}[{link[2]}]({where}{link[4] or ''})"
