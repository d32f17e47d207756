"""A host of the registry for tests that kill commands: a model of one layer, five tokens, data from an index."""

import torch

from dprm.data.draws import Draws
from dprm.data.packages import DataSets, Source
from dprm.order.files import write_whole
from dprm.train.task import Task
from dprm.train.trainings import MaskLaws
from dprm.train.transformer import Config
from tests.train.wishes import MASK, Wishes

INSIDE = "thing/rows.txt"
# Written by the test, which knows the archive: the checksum is that of `archive()`.
ARCHIVE = "thing-1.0-py3-none-any.whl"


def archive() -> bytes:
    """A wheel of half a megabyte with one file of interest; the same bytes at every call."""
    import io
    import random
    import zipfile

    buffer, text = io.BytesIO(), random.Random(0).randbytes(400_000).hex()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(zipfile.ZipInfo(INSIDE, (2026, 1, 1, 0, 0, 0)), text)
    return buffer.getvalue()


class Sequences:
    """One prompt token, repeated as the answer."""

    mask_id = MASK

    def batch(self, step, rows):
        clean = Draws(3, step).below(5, rows, 1).expand(rows, 5)
        return clean, (torch.arange(5) > 0).expand(rows, 5)


def wrapped(model, device):
    """The host with a model of its own."""
    from dprm.train.denoiser import Denoiser

    host = Wishes()
    host.model = lambda: Denoiser(model)
    return host


def prepared(path, folder):
    """The file in capital letters."""
    write_whole(folder / "rows.txt", path.read_bytes().upper())
    return folder / "rows.txt", ["1 row"]


def data_sets() -> DataSets:
    import hashlib

    digest = hashlib.sha256(archive()).hexdigest()
    return DataSets({"thing": Source("thing", ARCHIVE, digest, INSIDE, "MIT", "rows")}, prepared)


TASK = Task(Config(6, width=32, depth=1, heads=1), lambda seed, device, folder: Sequences(), wrapped, phases=4)
TRAININGS = MaskLaws(orders=("confidence", "random"), widths=(1, 2))
DATA = data_sets()
