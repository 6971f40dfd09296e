"""Waiting for flights: in a coroutine, whose loop does nothing meanwhile, or in a thread; and what becomes of one that nobody waits for.

A cancelled coroutine cancels its operation, and ends when that has: then the tensors are the program's again.  The second cancel does
not wait for that.  A receive is withdrawn instead, by a function that says whether it ends soon.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
from typing import Callable, Optional

from pccl.multiworld.flight import Flight


async def settled(flight: Flight, withdraw: Optional[Callable[[], bool]] = None) -> None:
    """Returns when the flight has ended, however it did.  CancelledError: it was cancelled, and has ended, or was withdrawn."""
    try:
        await _ended(flight)
    except asyncio.CancelledError:
        if _given_up(flight, withdraw):
            await _ended(flight)
        raise


def wait(flight: Flight, withdraw: Optional[Callable[[], bool]] = None) -> None:
    """The same for a thread; an interrupt cancels or withdraws the operation, and does not wait for its end."""
    try:
        flight.wait()
    except BaseException:
        _given_up(flight, withdraw)
        raise


def tell(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> None:
    """Sets a future of that loop, from any thread."""
    try:
        loop.call_soon_threadsafe(_set, future)
    except RuntimeError:
        pass  # the loop was closed: nobody waits


def _given_up(flight: Flight, withdraw: Optional[Callable[[], bool]]) -> bool:
    """Cancels it, or withdraws it; returns whether it ends soon."""
    if withdraw is not None:
        return withdraw()
    flight.cancel()
    return True


async def _ended(flight: Flight) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    flight.when_done(lambda: tell(loop, future))
    await future


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
