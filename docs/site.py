"""For the site: pages that live outside of docs/, and the code that pages link to, each file as a page.

`make docs` builds the site; a link that leads nowhere is an error.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# Files of the repository that are pages of the site.
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "examples/README.md": "examples.md"}
_LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)]*)?(\))")


def on_config(config: Any) -> Any:
    """The hosts that have a page, by its title."""
    for section in config.nav:
        if "Hosts" in section:
            folders = sorted((ROOT / "src" / "dprm" / "hosts").glob("*/__init__.py"))
            pages = [page for folder in folders if (page := ROOT / "docs" / f"{folder.parent.name}.md").is_file()]
            section["Hosts"] = [{page.read_text().splitlines()[0].lstrip("# "): page.name} for page in pages]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add them; their links become those of the site."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=_linked((ROOT / source).read_text(), source, page)))
    for page in [file for file in files.documentation_pages() if file.src_uri not in PAGES.values()]:
        text = Path(str(page.abs_src_path)).read_text()
        for _, target, _, _ in _LINK.findall(text):
            path = _in_repository(target, f"docs/{page.src_uri}")
            if path is not None and _as_page(path) not in files.src_uris and (ROOT / path).is_file():
                files.append(_code(config, path))
    for source in PAGES:
        for _, target, _, _ in _LINK.findall((ROOT / source).read_text()):
            path = _in_repository(target, source)
            if path is not None and _as_page(path) not in files.src_uris and (ROOT / path).is_file():
                files.append(_code(config, path))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of docs/ lead to the pages of the code."""
    uri = page.file.src_uri
    return markdown if uri in PAGES.values() or uri.startswith("code/") else _linked(markdown, f"docs/{uri}", uri)


def _in_repository(target: str, source: str) -> str | None:
    """The path in the repository of a link, where it is to a file outside of the pages."""
    if re.match(r"[a-z]+:", target):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    return None if path.startswith("docs/") or path in PAGES else path


def _as_page(path: str) -> str:
    return f"code/{path}.md" if not path.endswith((".json", ".svg")) else f"code/{path}"


def _linked(text: str, source: str, page: str) -> str:
    def turned(match: re.Match[str]) -> str:
        start, target, section, end = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in PAGES:
            uri = PAGES[path]
        elif path.startswith("docs/"):
            uri = path.removeprefix("docs/")
        elif (ROOT / path).is_dir():
            uri = "results.md"  # A folder of cards: the page of its tables.
        else:
            uri = _as_page(path)
        return f"{start}{posixpath.relpath(uri, posixpath.dirname(page) or '.')}{section or ''}{end}"

    return _LINK.sub(turned, text)


def _code(config: Any, path: str) -> File:
    if path.endswith((".json", ".svg")):
        return File.generated(config, _as_page(path), abs_src_path=str(ROOT / path))
    language = "python" if path.endswith(".py") else ""
    text = f"# {path}\n\n````{language}\n{(ROOT / path).read_text()}\n````\n"
    file = File.generated(config, _as_page(path), content=text)
    file.inclusion = file.inclusion.NOT_IN_NAV if hasattr(file.inclusion, "NOT_IN_NAV") else file.inclusion
    return file
