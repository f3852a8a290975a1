"""The programs of this folder as modules, so that one can use what another has."""

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType


def load(name: str) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(name, str(Path(__file__).with_name(name)))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
