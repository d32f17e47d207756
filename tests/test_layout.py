"""The package keeps its shape: dependencies point one way, and importing it is cheap."""

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import dprm

SOURCE = Path(dprm.__file__).parent
# Each folder may import the ones before it; fit and train do not know each other.
LAYERS = ["order", "data", "decode", "host", "fit", "train", "search", "hosts", "evaluate", "contrib", "report", "cli"]
MAY_IMPORT = {
    **{layer: set(LAYERS[:index]) for index, layer in enumerate(LAYERS)},
    "data": {"order"},
    "train": {"order", "data", "decode", "host"},
    "search": {"order", "data", "decode", "host"},
    "hosts": {"order", "data", "decode", "host", "train", "search"},
    "theory": {"order", "decode"},
    "report": {*LAYERS[:-2], "theory"},
    "cli": {*LAYERS[:-1], "theory"},
}
HEAVY = ["rdkit", "anndata", "diffusers", "transformers", "matplotlib", "plotly", "pandas", "scipy", "rich", "typer"]


def imported(path: Path) -> set[str]:
    """Every module a file imports, at whatever depth."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "dprm")
    return modules


@pytest.mark.parametrize("folder", sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()))
def test_dependencies_point_one_way(folder):
    for path in (SOURCE / folder).rglob("*.py"):
        for module in imported(path):
            parts = module.split(".")
            if parts[0] == "dprm" and len(parts) > 1 and (SOURCE / parts[1]).is_dir():
                allowed = MAY_IMPORT[folder] | {folder}
                assert parts[1] in allowed, f"{path.relative_to(SOURCE)} imports {module}"


def test_no_host_imports_another():
    hosts = [path for path in (SOURCE / "hosts").iterdir() if (path / "__init__.py").exists()]
    assert len(hosts) > 5
    names = {path.name for path in hosts}
    for folder in hosts:
        for path in folder.rglob("*.py"):
            for module in imported(path):
                room, _, host = module.removeprefix("dprm.").partition(".")
                others = names - {folder.name}
                assert room != "hosts" or host.split(".")[0] not in others, f"{path.relative_to(SOURCE)}: {module}"


def test_the_order_module_needs_torch_numpy_and_safetensors_only():
    allowed = {"torch", "numpy", "safetensors", "dprm", *sys.stdlib_module_names}
    for path in (SOURCE / "order").rglob("*.py"):
        # Kernels are imported where there is a device for them, and only there.
        kernels = {"triton"} if path.name.startswith("triton_") else set()
        assert {module.split(".")[0] for module in imported(path)} <= allowed | kernels, path.name


def test_importing_dprm_imports_no_host_and_no_heavy_library():
    code = "import sys, dprm; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for module in [*HEAVY, "dprm.hosts", "dprm.theory", "dprm.cli", "dprm.report"]:
        assert module not in loaded


def test_lazy_parts_are_there_when_asked_for():
    assert dprm.theory.Chain
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dprm.nothing


def test_the_version_is_the_one_installed():
    assert dprm.__version__ == importlib.metadata.version("dprm")
