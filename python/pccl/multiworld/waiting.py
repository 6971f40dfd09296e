"""Waiting for flights: in a coroutine, whose loop does nothing meanwhile, or in a thread; and what becomes of one that nobody waits for.

A coroutine that is cancelled gives its operation up, and ends when that has: then the tensors are the program's again.  The second
cancel does not wait for that.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio

from pccl.multiworld.domain import Flight


async def settled(flight: Flight) -> None:
    """Returns when the flight has ended, however it did.  CancelledError: it was cancelled, and has ended."""
    try:
        await _ended(flight)
    except asyncio.CancelledError:
        flight.cancel()
        await _ended(flight)
        raise


def wait(flight: Flight) -> None:
    """The same for a thread; what interrupts it gives the operation up, and does not wait any more."""
    try:
        flight.wait()
    except BaseException:
        flight.cancel()
        raise


def tell(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> None:
    """Sets a future of that loop, from any thread."""
    try:
        loop.call_soon_threadsafe(_set, future)
    except RuntimeError:
        pass  # the loop was closed: nobody waits


async def _ended(flight: Flight) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    flight.when_done(lambda: tell(loop, future))
    await future


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
