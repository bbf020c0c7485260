"""How crowded the machine is: limits of time are stretched by that and by nothing else."""

import os
from typing import Final

FREE: Final = 2.0
"""Programs that want to run, a core, up to which a limit holds as it is."""


def crowd() -> float:
    """Programs that want to run, a core, over the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def stretch() -> float:
    """What a limit is multiplied by: 1 unless the machine is overloaded."""
    return max(1.0, crowd() / FREE)
