"""The host by its doors: a picture from words, captions from a file, examples for a page."""

import struct

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.data.scenes import PALETTE
from dprm.host import weights
from dprm.hosts import load, picture_of
from dprm.hosts.omni import canvas, files, judges
from dprm.hosts.omni.captions import read
from dprm.hosts.omni.data import tidy
from dprm.hosts.omni.host import Pictures
from dprm.hosts.omni.penalties import Painter
from dprm.train.denoiser import save_weights
from dprm.train.transformer import Config, Transformer


def tiny():
    return Transformer(Config(canvas.VOCABULARY, width=32, depth=1, heads=1, sides=canvas.SIDES))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path))
    save_weights(tmp_path / "omni.safetensors", tiny(), {})
    weights.record(tmp_path / "omni.safetensors", "make", {"solved": 0.0})
    dprm.Order().policy().save(tmp_path / "own.dprm")
    return tmp_path


def test_a_caption_becomes_a_png(shipped):
    out = shipped / "picture.png"
    arguments = ["generate", "omni", "three red circles left of a blue square", "--out", str(out)]
    result = CliRunner().invoke(app, [*arguments, "--policy", str(shipped / "own.dprm")])
    assert result.exit_code == 0, result.output
    assert "260 model calls" in " ".join(result.output.split())
    data = out.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (256, 256)


def test_what_is_no_caption_is_explained_and_words_are_for_hosts_that_take_them(shipped):
    result = CliRunner().invoke(app, ["generate", "omni", "a dog", "--out", str(shipped / "dog.png")])
    assert result.exit_code != 0
    assert "three red circles left of a blue square" in " ".join(result.output.split())
    with pytest.raises(ValueError, match="host toy takes no problem in words"):
        Pictures.__mro__[1].read_one(type("Toy", (), {"name": "toy"})(), "a dog")


def test_captions_of_a_file_and_the_pictures_of_a_page(tmp_path):
    host = Pictures(Painter(tiny()))
    path = tmp_path / "captions.txt"
    path.write_text("two green crosses\n\nsomething else\na red circle above a blue square\n")
    problems, left_out = host.read_problems(path)
    assert [str(caption) for caption in problems.facts] == ["two green crosses", "a red circle above a blue square"]
    assert left_out[0].startswith("line 3: prompt is 'something else'")
    tokens = canvas.whole(problems.facts, torch.stack([tidy(caption) for caption in problems.facts]))
    assert host.scores(problems, tokens)[:, 2:].tolist() == [[1.0, 1.0]] * 2
    examples = host.examples(problems, tokens)
    assert examples[0].startswith("two green crosses ..")
    svg = picture_of("omni")(examples)
    assert svg.startswith("<svg")
    assert svg.count("<text") >= 2
    assert "".join(host.show(token) for token in range(canvas.VOCABULARY)).startswith(canvas.LETTERS)


def test_judges_are_told_a_true_caption_from_a_false_one_better_than_by_chance():
    _, header = judges.read_tensors(judges.SHIPPED, "dprm.omni.judges")
    assert min(header["told"].values()) > 0.65
    pictures = canvas.picture(canvas.whole([read("a red circle")] * 2, torch.stack([tidy(read("a red circle"))] * 2)))
    scores = judges.scores([read("a red circle"), read("four yellow crosses")], pictures)
    assert bool((scores[0] > scores[1]).all())
    assert 0 <= float(scores.min()) <= float(scores.max()) <= 1


def test_a_png_has_the_colours_of_the_palette(tmp_path):
    picture = torch.arange(13).view(1, 13, 1).expand(1, 13, 13)[:, :, :1]
    data = files.png(PALETTE[picture[0]])
    assert data.endswith(b"IEND\xaeB`\x82")


def test_missing_weights_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path))
    with pytest.raises(ValueError, match=r"make them with: dprm train omni"):
        load("omni")
