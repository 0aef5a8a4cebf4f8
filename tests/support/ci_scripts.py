"""The scripts of `.ci`, which are no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

CI = Path(__file__).parents[2] / ".ci"


def load(name: str) -> ModuleType:
    """Runs `.ci/NAME.py` as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, CI / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where the dataclasses of a script look for their module.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
