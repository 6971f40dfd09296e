"""Members of one world as threads of this process."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Optional

from pccl._native import ffi, lib
from pccl.engine import World
from pccl.errors import check

_names = itertools.count()


def together(count: int, function: Callable[[int], Any]) -> list[Any]:
    """Calls `function` with 0 .. count - 1, each in a thread; returns what each returned, or raises what one raised."""
    results: list[Any] = [None] * count
    errors: list[Optional[BaseException]] = [None] * count

    def run(index: int) -> None:
        try:
            results[index] = function(index)
        except BaseException as error:  # noqa: B902 - the test's thread raises it
            errors[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results


def in_world(address: str, count: int, function: Callable[[World], Any], **parameters: Any) -> list[Any]:
    """The same with `count` members of a new world, that are connected and are destroyed at the end."""
    name = f"test-{next(_names)}"

    def member(rank: int) -> Any:
        with World(address, name=name, size=count, rank=rank, formation_timeout=30, **parameters) as world:
            world.connect()
            return function(world)

    return together(count, member)


def master_loss_seconds(world: World) -> float:
    """How long its calls wait for a lost master."""
    value = ffi.new("uint64_t *")
    check(lib.pcclGetOption(world.handle, lib.PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS, value), "pcclGetOption")
    return float(value[0]) / 1000
