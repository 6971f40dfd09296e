"""Stores of torch for the ranks of a job, which last as long as somebody refers to them.

Rank 0 serves each of its own at a free port; where that is, the others hear over a store that is needed until then only.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import time
from typing import Any

from pccl.comms import store
from pccl.comms.bootstrap import listening_host
from pccl.comms.environment import DEFAULT_TIMEOUT, rank_and_size
from pccl.comms.options import TimeoutLike, as_seconds
from pccl.types import imported


def _create_prefix_store(prefix: str, timeout: TimeoutLike) -> Any:
    """Collective: a torch PrefixStore of all ranks, over one that they meet by at MASTER_ADDR:MASTER_PORT, which is free again after this.

    RuntimeError: rank, size or that address is unknown, or the port is taken.  TimeoutError: not all have come.
    """
    return _dup_prefix_store(prefix, None, timeout)


def _dup_prefix_store(prefix: str, bootstrap_store: Any, timeout: TimeoutLike) -> Any:
    """Collective: as `_create_prefix_store`, by another store: one of torch, a path, "host:port", or callbacks (set, get, wait).

    Both are used with a `prefix` once; the `timeout` is that of the new store's waits, too.
    """
    dist = imported("torch").distributed
    rank, size = rank_and_size()
    seconds = as_seconds(timeout) or DEFAULT_TIMEOUT
    until, limit = time.monotonic() + seconds, datetime.timedelta(seconds=seconds)
    where, here = f"pccl/store/{prefix}/address", f"pccl/store/{prefix}/here/"
    with store.opened_for(bootstrap_store, rank, size, seconds) as place:
        if rank == 0:
            host = listening_host({})
            served = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=limit)
            place.set(where, f"{host} {served.port}")
        else:
            host, _, port = place.get(where, seconds).partition(" ")
            rest = datetime.timedelta(seconds=max(until - time.monotonic(), 0.1))
            served = dist.TCPStore(host, int(port), is_master=False, wait_for_workers=False, timeout=rest)
            served.set_timeout(limit)
        served.set(f"{here}{rank}", "")
        served.wait([f"{here}{other}" for other in range(size)], datetime.timedelta(seconds=max(until - time.monotonic(), 0.1)))
    return dist.PrefixStore(prefix, served)
