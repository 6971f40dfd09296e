"""torch's store in a process of its own: who is forked of one that serves it may inherit what the server's threads hold, and hang."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import multiprocessing
from typing import Any, Iterator

import torch.distributed as dist
from support import end_with_parent

_FORK = multiprocessing.get_context("fork")


def _serve(pipe: Any, port: int) -> None:
    end_with_parent()
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    pipe.send(store.port)
    pipe.poll(None)  # until the other end is closed


@contextlib.contextmanager
def served_store(port: int = 0) -> Iterator[int]:
    """Its port; it ends with the block."""
    here, there = _FORK.Pipe()
    process = _FORK.Process(target=_serve, args=(there, port), daemon=True)
    process.start()
    there.close()
    try:
        yield int(here.recv())
    finally:
        process.kill()
        process.join()
        here.close()
