"""Questions of others are read, split by picture and judged as they are."""

import io
import json
import zipfile

import pytest
import torch

from dprm.hosts.llada_v import easy_vqa
from dprm.hosts.llada_v.easy_vqa import EOT, LENGTH, QUESTION, WORDS, EasyQuestions, encoded, prepare, rows_of
from dprm.order import Reading
from dprm.order.files import read_tensors

pillow = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """The questions of a small archive of the same form."""
    folder = tmp_path_factory.mktemp("easy")
    with zipfile.ZipFile(folder / "archive.whl", "w") as archive:
        for part, count in (("train", 64), ("test", 8)):
            asked = []
            for number in range(count):
                drawn = io.BytesIO()
                pillow.new("RGB", (64, 64), (number, 0, 255)).save(drawn, "png")
                archive.writestr(f"easy_vqa/data/{part}/images/{number}.png", drawn.getvalue())
                asked += [["what is the color of the shape?", "blue", number], ["is there a circle?", "no", number]]
                asked += asked[-1:]
            archive.writestr(f"easy_vqa/data/{part}/questions.json", json.dumps(asked))
    path, said = prepare(folder / "archive.whl", folder)
    assert said == ["216 questions about 72 pictures"]
    return read_tensors(path, "dprm.questions")[0]


@pytest.fixture
def host(listed, monkeypatch):
    monkeypatch.setattr(easy_vqa, "questions", lambda: listed)
    return EasyQuestions(None)


def test_pictures_are_in_one_split_and_test_is_that_of_the_package(host, listed):
    shown = {split: set(listed["shown"][rows_of(split)].tolist()) for split in ("train", "fit", "select", "test")}
    assert shown["test"] == set(range(64, 72))
    assert len(shown["train"] | shown["fit"] | shown["select"]) == 64
    assert not shown["train"] & shown["fit"]
    assert not shown["train"] & shown["select"]
    assert not shown["fit"] & shown["select"]
    with pytest.raises(ValueError, match="split is 'dev'"):
        rows_of("dev")


def test_a_question_comes_once_and_an_answer_must_be_exact(host):
    problems = host.problems("test", 100)
    problems.check()
    assert len(problems) == 16
    assert len(set(problems.groups.tolist())) == 8
    right = torch.stack(list(problems.facts))
    assert host.judge(problems, right).tolist() == [1.0] * 16
    right[:, -1] = WORDS.index("no")
    assert host.judge(problems, right).tolist() == [0.0] * 16
    assert {part for fact in problems.facts for part in host.parts(fact)} == {"yes or no", "open"}


def test_cells_tell_position_eot_and_format_apart(host):
    canvas = torch.tensor([encoded("is there a circle?", "no"), encoded("what is the red shape?", "circle")])
    zeros = torch.zeros(canvas.shape)
    state = easy_vqa.cell_state(canvas, Reading(canvas, zeros, zeros, zeros))[:, QUESTION:]
    assert canvas.shape == (2, LENGTH)
    assert canvas[0, -1] == EOT
    assert state.tolist() == [[0, 5, 6, 7], [8, 13, 14, 15]]


def test_words_that_are_not_known_are_refused():
    with pytest.raises(ValueError, match="not in"):
        encoded("is there a hexagon?", "no")
