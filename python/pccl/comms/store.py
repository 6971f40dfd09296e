"""Stores: where the ranks of a communicator find each other while it is made; any c10d store, a file, a host and port, or callbacks.

None of it needs torch.  A store is needed until `new_comm` has returned, and not after that.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import time
from typing import Any, Callable, Iterator, Optional, Protocol

from pccl.comms import environment
from pccl.comms.store_server import ServedElsewhere, StoreClient, StoreServer
from pccl.types import imported

#: How often something is looked at that tells nobody when it changes.
POLL_SECONDS = 0.02

#: How long who listens may take to say which kind of store it serves, at first; a busy rank 0 is given twice as long each time.
_FIRST_PATIENCE = 3.0


class Store(Protocol):
    """Values by key, of all ranks."""

    def set(self, key: str, value: str) -> None:
        """Stores it."""

    def get(self, key: str, seconds: float) -> str:
        """Waits for it.  TimeoutError: it has not come."""

    def add(self, key: str, amount: int) -> Optional[int]:
        """Counts up, from 0 or a greater number on, and returns the sum; None: this store cannot count."""

    def count(self, key: str) -> Optional[int]:
        """The sum, looked at and not waited for: 0 also while nobody serves the store; None as above."""


class C10dStore:
    """Any store of torch.distributed."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def set(self, key: str, value: str) -> None:
        self.store.set(key, value)

    def get(self, key: str, seconds: float) -> str:
        self.store.wait([key], datetime.timedelta(seconds=max(seconds, 0.001)))
        value = self.store.get(key)
        return value.decode() if isinstance(value, bytes) else str(value)

    def add(self, key: str, amount: int) -> Optional[int]:
        return int(self.store.add(key, amount))

    def count(self, key: str) -> Optional[int]:
        return self.add(key, 0)


class FileStore:
    """A file that all ranks reach: a dictionary, read and written under a lock."""

    def __init__(self, path: str) -> None:
        self.path = path

    @contextlib.contextmanager
    def _locked(self, change: bool) -> Iterator[dict[str, str]]:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX if change else fcntl.LOCK_SH)
            content = os.pread(file, os.fstat(file).st_size, 0).decode()
            try:
                values = json.JSONDecoder().raw_decode(content)[0] if content else {}
            except ValueError:
                raise RuntimeError(f"store file {self.path} is none of pccl.comms; name a new file") from None
            yield values
            if change:  # in this order whoever dies between the two leaves what can be read
                data = json.dumps(values).encode()
                os.pwrite(file, data, 0)
                os.ftruncate(file, len(data))
        finally:
            os.close(file)

    def set(self, key: str, value: str) -> None:
        with self._locked(True) as values:
            values[key] = value

    def get(self, key: str, seconds: float) -> str:
        until = time.monotonic() + seconds
        while True:
            with self._locked(False) as values:
                if key in values:
                    return str(values[key])
            if time.monotonic() >= until:
                raise TimeoutError(f"store file {self.path}: {key} has not come")
            time.sleep(POLL_SECONDS)

    def add(self, key: str, amount: int) -> Optional[int]:
        with self._locked(True) as values:
            total = int(values.get(key, "0")) + amount
            values[key] = str(total)
            return total

    def count(self, key: str) -> Optional[int]:
        with self._locked(False) as values:
            return int(values.get(key, "0"))


class CallbackStore:
    """Three functions of the program: ``set(key, value)``, ``get(key) -> value``, ``wait(keys, timedelta)``, values bytes or str."""

    def __init__(self, set_: Callable[..., Any], get: Callable[..., Any], wait: Callable[..., Any]) -> None:
        self._set, self._get, self._wait = set_, get, wait

    def set(self, key: str, value: str) -> None:
        self._set(key, value)

    def get(self, key: str, seconds: float) -> str:
        self._wait([key], datetime.timedelta(seconds=max(seconds, 0.001)))
        value = self._get(key)
        return bytes(value).decode() if isinstance(value, (bytes, bytearray, memoryview)) else str(value)

    def add(self, key: str, amount: int) -> Optional[int]:
        return None

    def count(self, key: str) -> Optional[int]:
        return None


class _AtAddress:
    """What rank 0 serves at a host and port; or, where somebody serves a c10d store there, that one."""

    def __init__(self, host: str, port: int, until: float) -> None:
        self.host, self.port, self.until = host, port, until
        self.inner: Optional[Store] = None
        self.patience = _FIRST_PATIENCE

    def _found(self) -> Store:
        """OSError: nobody listens there."""
        if self.inner is None:
            patience = max(0.1, min(self.patience, self.until - time.monotonic()))
            try:
                self.inner = StoreClient(self.host, self.port, patience)
            except ServedElsewhere:
                self.patience *= 2
                self.inner = _c10d_client(self.host, self.port, patience)
        return self.inner

    def _store(self) -> Store:
        while True:
            try:
                return self._found()
            except OSError as error:
                if time.monotonic() >= self.until:
                    raise TimeoutError(f"rank 0 has served no store at {self.host}:{self.port}: {error}") from None
                time.sleep(POLL_SECONDS)

    def _ask(self, ask: Callable[[Store], Any]) -> Any:
        while True:
            try:
                return ask(self._store())
            except TimeoutError:
                raise
            except (OSError, RuntimeError):  # it has gone meanwhile: another one may come there
                self.inner = None
                if time.monotonic() >= self.until:
                    raise
                time.sleep(POLL_SECONDS)

    def set(self, key: str, value: str) -> None:
        self._ask(lambda store: store.set(key, value))

    def get(self, key: str, seconds: float) -> str:
        return str(self._ask(lambda store: store.get(key, seconds)))

    def add(self, key: str, amount: int) -> Optional[int]:
        return int(self._ask(lambda store: store.add(key, amount)))

    def count(self, key: str) -> Optional[int]:
        try:
            return self._found().count(key)
        except (OSError, RuntimeError):
            self.inner = None
            return 0


def _c10d_client(host: str, port: int, seconds: float) -> Store:
    try:
        dist = imported("torch").distributed
    except RuntimeError:
        raise RuntimeError(f"what is served at {host}:{port} is no store of pccl.comms; free the port, or pass another store") from None
    limit = datetime.timedelta(seconds=max(seconds, 1.0))
    return C10dStore(dist.TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=limit))


@contextlib.contextmanager
def opened(store: Any, rank: int, until: float) -> Iterator[Store]:
    """The store that a program gave, for as long as it is needed; with None the one that rank 0 serves at MASTER_ADDR:MASTER_PORT.

    `store` may be a c10d store, the path of a file, "host:port", or three callbacks (set, get, wait).
    """
    if isinstance(store, (tuple, list)) and len(store) == 3 and all(map(callable, store)):
        yield CallbackStore(*store)
    elif isinstance(store, os.PathLike):
        yield FileStore(os.fspath(store))
    elif store is None or isinstance(store, str):
        host, port = _environment_address() if store is None else _address(store)
        if host is None:
            yield FileStore(str(store))
        else:
            if store is None and environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True":  # torchrun serves a c10d store there
                yield _c10d_client(host, port, until - time.monotonic())
                return
            with _served(host, port, rank, until) as served:
                yield served
    elif all(hasattr(store, name) for name in ("set", "get", "add", "wait")):
        yield C10dStore(store)
    else:
        raise TypeError(f"store is a {type(store).__name__}; pass a c10d store, a path, 'host:port' or callbacks (set, get, wait)")


@contextlib.contextmanager
def opened_for(store: Any, rank: int, size: int, seconds: float) -> Iterator[Store]:
    """The same for `seconds`; one rank alone needs none."""
    if size == 1:
        yield _OwnStore()
        return
    with opened(store, rank, time.monotonic() + seconds) as place:
        yield place


class _OwnStore:
    """Of one rank alone."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self._values[key] = value

    def get(self, key: str, seconds: float) -> str:
        if key not in self._values:
            raise TimeoutError(f"{key} has not come")
        return self._values[key]

    def add(self, key: str, amount: int) -> Optional[int]:
        self._values[key] = str(int(self._values.get(key, "0")) + amount)
        return int(self._values[key])

    def count(self, key: str) -> Optional[int]:
        return int(self._values.get(key, "0"))


@contextlib.contextmanager
def _served(host: str, port: int, rank: int, until: float) -> Iterator[Store]:
    if rank != 0:
        yield _AtAddress(host, port, until)
        return
    try:
        server = StoreServer(host, port)
    except OSError as error:  # a launcher's, or a program's own store may be there
        try:
            client = _c10d_client(host, port, until - time.monotonic())
        except Exception:
            raise RuntimeError(
                f"rank 0 cannot serve a store at {host}:{port}: {error}; free the port, or set MASTER_PORT to another"
            ) from None
        yield client
        return
    try:
        yield server
    finally:
        server.close()


def _environment_address() -> tuple[Optional[str], int]:
    host, port = environment.text("MASTER_ADDR"), environment.text("MASTER_PORT")
    if host is None or port is None or not port.isdigit():
        raise RuntimeError(
            f"there is no store, and MASTER_ADDR is {host!r} and MASTER_PORT {port!r}; set both, as torchrun does, or pass store="
        )
    return host, int(port)


def _address(text: str) -> tuple[Optional[str], int]:
    """Host and port of "host:port"; None where it is a path."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or "/" in text:
        return None, 0
    return host.strip("[]") or "127.0.0.1", int(port)


