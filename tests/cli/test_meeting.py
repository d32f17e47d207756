"""What a person meets first: help at once, a version, the learned order without being asked, progress that moves."""

import subprocess
import sys
import time

import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.cli.compare import named
from dprm.cli.progress import lines
from dprm.data.stock import kept
from dprm.data.underway import STEP, listening
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

runner = CliRunner()


def said(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout


def test_the_help_of_every_command_comes_without_torch():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom dprm.cli import app\n"
        "for command in [[], *([c.name or c.callback.__name__] for c in app.registered_commands)]:\n"
        "    assert CliRunner().invoke(app, [*command, '--help']).exit_code == 0, command\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    assert said("-c", code).split() == ["False", "False"]


def test_the_command_says_its_version_as_a_module_too():
    assert said("-m", "dprm", "--version") == f"dprm {dprm.__version__}\n"


def test_the_function_decode_stays_a_function_when_its_room_is_imported():
    code = "import dprm.decode.loop, dprm; print(callable(dprm.decode), dprm.Order.__name__, 'decode' in dir(dprm))"
    assert said("-c", code).split() == ["True", "Order", "True"]


def test_a_comparison_shows_the_committed_order_in_its_own_setting(tmp_path):
    arguments = ["compare", "puma_words", "--limit", "1", "--orders", "confidence", "--work", str(tmp_path)]
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "the setting of the committed learned order puma_words.dprm: --difficulty 4 --width 8" in shown.output
    assert "puma_words (4)" in shown.output
    assert "\ndprm " in shown.output
    without = runner.invoke(app, [*arguments, "--no-policy"])
    assert "\ndprm " not in without.output
    other = runner.invoke(app, [*arguments, "--width", "40"])
    assert "\ndprm " not in other.output


def test_one_learned_order_is_called_dprm_and_several_have_their_files_names(tmp_path):
    assert list(named([tmp_path / "mine-width2.dprm"], "mine")) == ["dprm"]
    several = [tmp_path / name for name in ("mine.dprm", "mine-width2.dprm", "head-1000.dprm")]
    assert list(named(several, "mine")) == ["dprm", "dprm width2", "dprm head-1000"]


def test_piped_progress_moves_inside_a_batch(capsys, monkeypatch):
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    show = lines()
    show("confidence", 0, 64)
    for step in range(1, 6):
        show(STEP, step, None)
    printed = capsys.readouterr().err.splitlines()
    assert printed == ["confidence: 0 of 64, step 1 of a batch", *printed[1:]]
    assert len(printed) > 1


def test_every_step_of_a_decoding_is_heard():
    heard = []
    with listening(lambda what, done, total: heard.append((what, done))):
        dprm.decode(MockDenoiser(), masked_canvas(2, 6, prompt=0), mask_id=MASK, budget=2)
    assert heard == [(STEP, 1), (STEP, 2), (STEP, 3)]
    dprm.decode(MockDenoiser(), masked_canvas(2, 6), mask_id=MASK)
    assert len(heard) == 3


def test_prepared_data_is_made_once_for_the_same_facts(tmp_path):
    made = []

    def make():
        made.append(len(made))
        return torch.arange(5) + len(made)

    path = tmp_path / "new" / "data.safetensors"
    first = kept(path, make, seed=1, code=dprm)
    assert torch.equal(kept(path, make, seed=1, code=dprm), first)
    assert made == [0]
    assert not torch.equal(kept(path, make, seed=2, code=dprm), first)
