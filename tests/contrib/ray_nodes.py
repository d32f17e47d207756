"""A cluster of three nodes on this machine, one of which dies in the middle: prints whether the bits are those of one
process, and on how many nodes the work was done. Every node has a worker, so that nothing can take the place of the
lost one: the others go on alone. Run by itself: Ray is started once a process."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import ray
import torch
from ray.cluster_utils import Cluster

from dprm.contrib.ray import Ray
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from tests.mock_host import MockHost


@dataclass(frozen=True)
class Watched(Decode):
    """Decodes slowly, and writes down where."""

    folder: str = ""

    def answer(self, host, problems, seed, model):
        time.sleep(0.2)
        (Path(self.folder) / ray.get_runtime_context().get_node_id()).touch()
        return super().answer(host, problems, seed, model)


def main() -> None:
    small = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    nodes = [cluster.add_node(**small) for _ in range(2)]
    host = MockHost()
    problems = host.problems("select", 40)
    killed = []

    def watch(name: str, done: int) -> None:
        if done >= 12 and not killed:
            killed.append(done)
            cluster.remove_node(nodes[1], allow_graceful=False)

    engine = Ray(3, cluster.address)
    found = decoded(host, problems, {"": Watched(folder=sys.argv[1])}, rows=2, on=engine, on_batch=watch)[""]
    alone = decoded(host, problems, {"": Decode()}, rows=40)[""]
    columns = alone.tensors()
    same = all(
        torch.equal(columns[name].nan_to_num(-1), column.nan_to_num(-1))
        for name, column in found.tensors().items()
        if name != "seconds"
    )
    print(json.dumps({"same": same, "nodes": len(list(Path(sys.argv[1]).iterdir())), "killed": len(killed)}))
    engine.close()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
