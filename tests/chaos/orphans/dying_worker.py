"""The worker process with points on the way to a running agent at which it kills itself.

`POINTS` names a file that gets a line for each point passed, `DIE_AT` one of those lines. A point lies before and after
each step that the outside can see: the lock, the record, the fork of the agent, its gate.
"""

import functools
import inspect
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from trunkline_adapters.app import run_app
from trunkline_adapters.settings import AdaptersSettings
from trunkline_agentkit.death import Leash
from trunkline_agentkit.place import Place
from trunkline_service import run

counts: Counter[str] = Counter()


def pass_point(name: str) -> None:
    counts[name] += 1
    line = f"{name} {counts[name]}"
    with Path(os.environ["POINTS"]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    if line == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


def with_points(kind: type, step: str) -> None:
    original: Any = getattr(kind, step)

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def awaited(*args: Any, **more: Any) -> Any:
            pass_point(f"before {step}")
            result = await original(*args, **more)
            pass_point(f"after {step}")
            return result

        setattr(kind, step, awaited)
    else:

        @functools.wraps(original)
        def called(*args: Any, **more: Any) -> Any:
            pass_point(f"before {step}")
            result = original(*args, **more)
            pass_point(f"after {step}")
            return result

        setattr(kind, step, called)


if __name__ == "__main__":
    for kind, step in ((Place, "lock"), (Place, "write"), (Leash, "give"), (Leash, "open_gate")):
        with_points(kind, step)
    run("adapters", run_app, AdaptersSettings)
