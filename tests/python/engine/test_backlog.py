"""The backlog by itself, over operations that end when the test says so."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any, Callable

import pytest

from pccl.engine.backlog import Backlog, Queued


class Fake:
    """An operation that ends by `end`."""

    def __init__(self) -> None:
        self.ended, self.error, self.cancelled = False, None, False
        self._callbacks: list[Callable[[Any], None]] = []

    def done(self) -> bool:
        return self.ended

    def wait(self, timeout: Any = None) -> bool:
        return self.ended

    def cancel(self) -> None:
        self.cancelled = True

    def when_done(self, callback: Callable[[Any], None]) -> None:
        if self.ended:
            callback(self)
        else:
            self._callbacks.append(callback)

    def end(self) -> None:
        self.ended = True
        for callback in self._callbacks:
            callback(self)


def started(backlog: Backlog, fakes: list[Fake], fake: Fake) -> Any:
    def launch() -> Any:
        fakes.append(fake)
        return fake

    return backlog.start(launch)


def test_operations_are_launched_in_their_order_as_others_end() -> None:
    backlog, launched = Backlog(2), []  # type: ignore[var-annotated]
    all_of_them = [Fake() for _ in range(5)]
    pending = [started(backlog, launched, fake) for fake in all_of_them]
    assert launched == all_of_them[:2] and pending[:2] == all_of_them[:2]  # what has begun is given as it is
    all_of_them[1].end()
    assert launched == all_of_them[:3]
    pending[4].cancel()
    for fake in all_of_them:
        fake.end()
    assert launched == all_of_them
    assert [fake.cancelled for fake in all_of_them] == [False, False, False, False, True]
    assert all(one.done() and one.wait(0) for one in pending)


def test_what_cannot_be_launched_is_raised_at_once_or_told_in_its_turn() -> None:
    def refuse() -> Any:
        raise ValueError("planted")

    backlog, launched, told = Backlog(1), [], []  # type: ignore[var-annotated]
    with pytest.raises(ValueError, match="planted"):
        backlog.start(refuse)
    first, last = Fake(), Fake()
    started(backlog, launched, first)
    refused = backlog.start(refuse)
    behind = started(backlog, launched, last)
    refused.when_done(told.append)
    assert not refused.done() and not refused.wait(0) and refused.error is None
    first.end()
    assert told == [refused] and refused.done() and str(refused.error) == "planted"
    with pytest.raises(ValueError, match="planted"):
        refused.wait()
    assert launched == [first, last]
    last.end()
    assert behind.wait()


def test_nobody_is_called_back_with_a_lock_held() -> None:
    """Who is called back may wait for what another thread is to launch."""
    backlog, launched, seen = Backlog(1), [], []  # type: ignore[var-annotated]

    def called(_: Any) -> None:
        other = threading.Thread(target=lambda: seen.append(backlog.flying()))
        other.start()
        other.join(10)

    first, second = Fake(), Fake()
    started(backlog, launched, first)
    pending = started(backlog, launched, second)
    assert isinstance(pending, Queued)
    pending.when_done(called)
    second.ended = True  # before it is launched: it calls back at once
    first.end()
    assert launched == [first, second] and len(seen) == 1
