"""The worker process with points on the way to and from a detached agent, at one of which (`DIE_AT`) it kills itself."""

import functools
import inspect
import os
import signal
from collections import Counter
from typing import Any

from trunkline_adapters.app import run_app
from trunkline_adapters.settings import AdaptersSettings
from trunkline_agentkit.catching_up import CatchingUp
from trunkline_agentkit.held import HeldProcess
from trunkline_service import run

counts: Counter[str] = Counter()


def pass_point(name: str) -> None:
    counts[name] += 1
    if f"{name} {counts[name]}" == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


def with_points(kind: type, step: str) -> None:
    original: Any = getattr(kind, step)

    @functools.wraps(original)
    async def awaited(*args: Any, **more: Any) -> Any:
        pass_point(f"before {step}")
        result = await original(*args, **more)
        pass_point(f"after {step}")
        return result

    @functools.wraps(original)
    def called(*args: Any, **more: Any) -> Any:
        pass_point(f"before {step}")
        result = original(*args, **more)
        pass_point(f"after {step}")
        return result

    setattr(kind, step, awaited if inspect.iscoroutinefunction(original) else called)


if __name__ == "__main__":
    for kind, step in (
        (HeldProcess, "put_line"),
        (HeldProcess, "drain"),
        (HeldProcess, "said"),
        (CatchingUp, "pass_on"),
        (CatchingUp, "end"),
    ):
        with_points(kind, step)
    run("adapters", run_app, AdaptersSettings)
