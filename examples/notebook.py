"""The notebook of own_model.py, cell by cell: python examples/notebook.py (with --check: compare only)."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def notebook(script: str) -> str:
    """A script whose cells begin with `# %%` as a notebook; what follows the mark is said above the cell."""
    title, *cells = script.split("# %% ")
    blocks = [_cell("markdown", title.strip().strip('"'))]
    for cell in cells:
        said, _, code = cell.partition("\n")
        blocks += [_cell("markdown", said), _cell("code", code.strip())]
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": blocks, "metadata": about, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


def _cell(kind: str, text: str) -> dict[str, object]:
    run = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **run}


if __name__ == "__main__":
    made, path = notebook((HERE / "own_model.py").read_text()), HERE / "own_model.ipynb"
    if "--check" in sys.argv:
        sys.exit(int(not path.is_file() or path.read_text() != made))
    path.write_text(made)
