"""The backends that are held to the contract: each module names its own in ``CASES``."""

import importlib
import pkgutil

from tests.contract.case import Case


def all_cases() -> list[Case]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return [case for module in modules for case in module.CASES]
