"""The gateway's methods, one module a namespace; importing this package registers them all."""

import importlib
import pkgutil
from typing import Final

from trunkline_gateway.registry import METHODS, Method

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

ALL: Final[dict[str, Method]] = METHODS
