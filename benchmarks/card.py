"""A card of measurements: the rows, the machine they were made on, the versions, and the command."""

import json
import os
import platform
from pathlib import Path

import numpy as np
import torch


def machine() -> dict[str, object]:
    """What the numbers depend on besides the code."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        named = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        cpu = named[0].split(":")[1].strip() if named else cpu
    return {
        "processor": cpu,
        "cores": os.cpu_count(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def write_card(path: str, command: str, rows: list[dict[str, object]]) -> None:
    """Write the card as JSON."""
    card = {"command": command, "machine": machine(), "rows": rows}
    Path(path).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
