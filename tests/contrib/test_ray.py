"""Work that is spread over actors ends in the bits of one process: in any order, with losses, after kills."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

import ray  # noqa: E402

import dprm  # noqa: E402
from dprm.cli.arguments import chosen_engine  # noqa: E402
from dprm.contrib import ray_actors  # noqa: E402
from dprm.contrib.ray import Ray  # noqa: E402
from dprm.fit import OnPolicy, fit  # noqa: E402
from dprm.fit.head import HeadFit  # noqa: E402
from dprm.host.decoded import decoded  # noqa: E402
from dprm.host.rollout import Decode  # noqa: E402
from tests.mock_host import MockHost  # noqa: E402
from tests.toy_host import ToyHost  # noqa: E402

ROOT = Path(__file__).parents[2]
TOY = f"{ROOT / 'tests' / 'toy_host.py'}:ToyHost"
# Of a core for every actor, so that several engines fit into one cluster.
SHARE = 0.125
WAYS = {"host": Decode(), "random": Decode(dprm.Order(signal="random")), "drawn": Decode(temperature=1.0)}


@pytest.fixture(scope="module")
def engine():
    started = Ray(2, cpus=SHARE)
    yield started
    started.close()
    ray.shutdown()


def same(first, second):
    for name, rollout in first.items():
        for column, values in rollout.tensors().items():
            if column != "seconds":
                assert torch.equal(values.nan_to_num(-1), second[name].tensors()[column].nan_to_num(-1)), (name, column)


def test_a_comparison_and_its_variants_are_those_of_one_process(engine):
    host = MockHost()
    problems = host.problems("select", 30)
    same(decoded(host, problems, WAYS, rows=4), decoded(host, problems, WAYS, rows=4, on=engine))
    other = host.with_decoding(temperature=1.0)
    same(decoded(other, problems, WAYS, rows=7), decoded(other, problems, WAYS, rows=7, on=engine))


@pytest.mark.parametrize("estimator", [OnPolicy(), HeadFit(rounds=1)], ids=["onpolicy", "head"])
def test_a_fit_is_that_of_one_process(engine, estimator):
    alone = fit(estimator, ToyHost(), calls=800, rows=8)
    together = fit(estimator, ToyHost(), calls=800, rows=8, on=engine)
    assert together.policy.digest == alone.policy.digest
    assert together.policy.notes == alone.policy.notes


class Pieces:
    """Work whose pieces can be watched: the n-th problem is answered late, and in its own time kills its worker."""

    def __init__(self, folder, late=(), deadly=()):
        self.folder, self.late, self.deadly = str(folder), late, deadly

    def __call__(self, host, model, problems):
        number = int(problems.key[0])
        if number in self.late:
            time.sleep(0.5)
        tries = len(list(Path(self.folder).glob(f"{number}-*")))
        (Path(self.folder) / f"{number}-{tries}").touch()
        if number in self.deadly and tries == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return number


def numbered(count, work):
    problems = ToyHost().problems("train", count)
    return [(work, problems[number : number + 1]) for number in range(count)]


def test_results_come_in_their_order_and_none_twice_also_where_workers_die(engine, tmp_path):
    work = Pieces(tmp_path, late=(0, 9), deadly=(3, 4, 11))
    assert list(engine.each(ToyHost(), numbered(20, work))) == list(range(20))
    assert all((tmp_path / f"{number}-1").exists() for number in (3, 4, 11))


def test_the_driver_holds_a_window_of_results_and_no_more(engine, tmp_path):
    results = engine.each(ToyHost(), numbered(100, Pieces(tmp_path)))
    assert next(results) == 0
    time.sleep(1.0)
    assert len(list(tmp_path.iterdir())) <= 2 * 8
    assert list(results) == list(range(1, 100))


def test_a_piece_that_kills_every_worker_is_named(tmp_path):
    class Deadly(Pieces):
        def __call__(self, host, model, problems):
            os.kill(os.getpid(), signal.SIGKILL)

    engine = Ray(1, tries=2, cpus=SHARE)
    with pytest.raises(ValueError, match="piece 0 was lost 2 times; its workers die of it"):
        list(engine.each(ToyHost(), numbered(1, Deadly(tmp_path))))
    engine.close()


def test_what_the_work_raises_is_raised_here(engine):
    host = ToyHost()
    host.judge = lambda problems, tokens: torch.full((len(tokens),), 2.0)
    with pytest.raises(ValueError, match=r"score of reward\[row 0\] is 2"):
        decoded(host, ToyHost().problems("select", 4), WAYS, on=Ray(1, cpus=SHARE))


def test_a_worker_with_another_host_is_refused():
    class Other(ToyHost):
        weights = "others"

    engine = Ray(1, load=Other, cpus=SHARE)
    with pytest.raises(ValueError, match="a worker makes another host than this process"):
        decoded(ToyHost(), ToyHost().problems("select", 4), WAYS, on=engine)


def test_a_model_is_loaded_once_an_actor(engine, tmp_path):
    class Loading(ToyHost):
        def model(self):
            (tmp_path / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            return super().model()

    decoded(Loading(), ToyHost().problems("select", 40), WAYS, rows=4, on=engine)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_worker_asks_for_a_gpu_where_its_model_runs_on_one(engine):
    with pytest.raises(ValueError, match="1 workers ask for 1 GPUs: the cluster has 0"):
        decoded(ToyHost(), ToyHost().problems("select", 4), WAYS, on=chosen_engine("ray", 1, None, "cuda"))


class WithoutWeights(ToyHost):
    def model(self):
        raise FileNotFoundError("there are no weights on this machine")


class Deadly(ToyHost):
    def model(self):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("host", "reason"), [(WithoutWeights, "there are no weights on this machine"), (Deadly, "die while they make")]
)
def test_workers_that_cannot_make_the_host_or_die_of_it_are_said(host, reason):
    engine = Ray(1, load=host, cpus=SHARE)
    with pytest.raises(ValueError, match=reason):
        decoded(ToyHost(), ToyHost().problems("select", 4), WAYS, on=engine)


def test_a_cluster_that_is_too_small_is_said(engine):
    with pytest.raises(ValueError, match="64 workers ask for 64 CPUs: the cluster has 1"):
        decoded(ToyHost(), ToyHost().problems("select", 4), WAYS, on=Ray(64))


def test_what_is_waited_for_on_a_busy_cluster_is_said(engine, monkeypatch):
    monkeypatch.setattr(ray_actors, "_PATIENCE", 0.5)
    assert list(engine.each(ToyHost(), [])) == []
    decoded(ToyHost(), ToyHost().problems("select", 2), WAYS, on=engine)
    engine.close()
    time.sleep(0.5)
    others = ray.remote(num_cpus=0.9)(Holding).remote()
    ray.get(others.ready.remote())
    said = []

    def told(line):
        said.append(line)
        ray.kill(others)

    waiting = Ray(1, cpus=0.5, on_wait=told)
    decoded(ToyHost(), ToyHost().problems("select", 2), WAYS, on=waiting)
    waiting.close()
    assert said == ["1 of 1 workers are waited for: 0.1 of 1 CPUs are free, other work holds the rest"]


class Holding:
    """Somebody else's actor."""

    def ready(self):
        return True


def command(*arguments, cwd, **environment):
    code = "from dprm.cli import main; main()"
    told = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=cwd, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_a_command_whose_driver_is_killed_goes_on_to_the_same_card(tmp_path):
    how = ["compare", TOY, "--limit", "1200", "--rows", "4", "--orders", "random", "--out", "card.json"]
    spread = [*how, "--engine", "ray", "--workers", "2"]
    for folder in ("alone", "spread"):
        (tmp_path / folder).mkdir()
    alone = command(*how, cwd=tmp_path / "alone")
    assert alone.wait(120) == 0, alone.stdout.read()
    killed = command(*spread, cwd=tmp_path / "spread")
    while killed.poll() is None and not list((tmp_path / "spread").rglob("*.rollout")):
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    finished = command(*spread, cwd=tmp_path / "spread")
    assert finished.wait(120) == 0, finished.stdout.read()
    cards = [json.loads((tmp_path / folder / "card.json").read_text()) for folder in ("alone", "spread")]
    for card in cards:
        card.pop("command")
        for arm in card["arms"].values():
            arm.pop("seconds"), arm.pop("time_ratio")
    assert cards[0] == cards[1]
    bits = [(tmp_path / folder / "card.outcomes.npz").read_bytes() for folder in ("alone", "spread")]
    assert bits[0] == bits[1]


def test_fit_and_study_by_command_end_in_the_bits_of_one_process(tmp_path):
    fitting = ["fit", TOY, "--estimator", "onpolicy", "--calls", "400", "--select", "40", "--out", "toy.dprm"]
    studying = ["study", "puma_words", "--tiny", "--steps", "2", "--limit", "4", "--out", "study.json"]
    for folder, more in (("alone", []), ("spread", ["--engine", "ray", "--workers", "2"])):
        (tmp_path / folder).mkdir()
        for how in (fitting, studying):
            done = command(*how, *more, cwd=tmp_path / folder)
            assert done.wait(240) == 0, done.stdout.read()
    policies = [dprm.Policy.load(tmp_path / folder / "toy.dprm") for folder in ("alone", "spread")]
    assert policies[0].digest == policies[1].digest
    bits = [(tmp_path / folder / "study.outcomes.npz").read_bytes() for folder in ("alone", "spread")]
    assert bits[0] == bits[1]


def test_a_node_of_a_cluster_that_dies_changes_no_bit(tmp_path):
    command = [sys.executable, "-m", "tests.contrib.ray_nodes", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (said,) = (json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"same"'))
    assert (said["same"], said["killed"]) == (True, 1)
    assert said["nodes"] >= 2
