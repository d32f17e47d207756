"""Files: in place whole or not at all, and a folder of work that belongs to one process."""

import os
import subprocess
import sys

import pytest

from dprm.order.files import claim, read_whole, write_whole


def test_what_is_written_reaches_the_disk_before_its_name_and_then_the_name(tmp_path, monkeypatch):
    happened = []
    sync, move = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda number: (happened.append("synced"), sync(number)))
    monkeypatch.setattr("os.replace", lambda *names: (happened.append("named"), move(*names)))
    write_whole(tmp_path / "deep" / "file", b"whole")
    assert (tmp_path / "deep" / "file").read_bytes() == b"whole"
    assert happened == ["synced", "named", "synced"], "first the file, then the folder with its new name"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


def test_a_folder_in_use_is_refused_to_another_process_and_free_when_it_has_ended(tmp_path):
    said = "import sys; from pathlib import Path; from dprm.order.files import claim; claim(Path(sys.argv[1]))"
    holding = f"{said}; print('mine', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", holding, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline() == "mine\n"
    with pytest.raises(ValueError, match="is in use by another process: wait for it, or choose another folder"):
        claim(tmp_path)
    other.kill()
    other.communicate()
    claim(tmp_path)
    claim(tmp_path)  # What is one's own stays so.


def test_only_files_with_an_end_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"bytes")
    assert read_whole(tmp_path / "file") == b"bytes"
    for path in (tmp_path, "/dev/zero"):
        with pytest.raises(ValueError, match="is no regular file"):
            read_whole(path)
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "missing")
