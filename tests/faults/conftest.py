"""Commands that can be killed, and a package index that answers slowly."""

import shutil
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.faults.commands import Commands
from tests.faults.wishes import ARCHIVE, archive


@pytest.fixture(scope="session")
def commands():
    started = Commands()
    yield started
    started.close()


@pytest.fixture
def home():
    """A folder that anybody may enter, for commands of a user who is not the superuser."""
    # In memory, where there is such a place: a kill does not need a disk, and disks take their time to be sure.
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="dprm-faults-", dir=memory if memory.is_dir() else None))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def index():
    """The address of a package index with one archive, which comes in pieces that take their time."""
    body = archive()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.path.rpartition("/")[2]
            page = f'<a href="../../files/{ARCHIVE}">{ARCHIVE}</a>'.encode()
            wanted = self.headers.get("Range")
            first = int(wanted[6:-1]) if wanted else 0
            whole = body if asked else page
            self.send_response(416 if first >= len(whole) else 206 if wanted else 200)
            self.send_header("Content-Length", str(len(whole) - first))
            self.end_headers()
            try:
                for start in range(first, len(whole), 40_000):
                    self.wfile.write(whole[start : start + 40_000])
                    time.sleep(0.01)
            except OSError:  # Whoever asked was killed.
                pass

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
