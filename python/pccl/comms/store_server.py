"""The store that rank 0 serves while a communicator is made: set, get and add, over TCP, gone when all have found each other.

It counts from the time of its start on, so that a rank 0 that was started anew has greater numbers than before.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from typing import Any, Optional

_HELLO = b"pccl store 1\n"
_MOST_BYTES = 1 << 20
_ANSWER_SECONDS = 20.0


class ServedElsewhere(ConnectionError):
    """Something listens there that is no store of this kind."""


class StoreServer:
    """Serves, and is the store of its own process.  OSError: the address cannot be bound."""

    def __init__(self, host: str, port: int) -> None:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(where)
            self._listener.listen(1024)
            self._listener.setblocking(False)
        except OSError:
            self._listener.close()
            raise
        self._values: dict[str, str] = {}
        self._first = time.time_ns()
        self._changed = threading.Condition()
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._clients: dict[socket.socket, bytes] = {}
        self._greeted: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, name="pccl-store", daemon=True)
        self._thread.start()

    def set(self, key: str, value: str) -> None:
        """As `Store.set`."""
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def get(self, key: str, seconds: float) -> str:
        """As `Store.get`."""
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._values, seconds):
                raise TimeoutError(f"{key} has not come")
            return self._values[key]

    def add(self, key: str, amount: int) -> Optional[int]:
        """As `Store.add`."""
        with self._changed:
            total = int(self._values.get(key, self._first)) + amount
            self._values[key] = str(total)
            return total

    def count(self, key: str) -> Optional[int]:
        """As `Store.count`."""
        with self._changed:
            return int(self._values.get(key, "0"))

    def close(self) -> None:
        """Frees the port; clients have found each other by then."""
        self._wake.close()
        self._thread.join()
        for client in [self._listener, self._woken, *self._clients]:
            client.close()
        self._selector.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.fileobj)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        client.settimeout(5.0)
        self._clients[client] = b""
        self._selector.register(client, selectors.EVENT_READ)

    def _read(self, client: Any) -> None:
        try:
            data = client.recv(65536)
        except OSError:
            data = b""
        said = self._clients[client] + data
        stranger = client not in self._greeted and not _HELLO.startswith(said[:len(_HELLO)])  # it may wait for ever for another answer
        if not data or stranger or len(said) > _MOST_BYTES:
            self._drop(client)
            return
        *lines, self._clients[client] = said.split(b"\n")
        for line in lines:
            if not self._answer(client, line):
                self._drop(client)
                return

    def _answer(self, client: socket.socket, line: bytes) -> bool:
        """One request; False: it is none."""
        try:
            if client not in self._greeted:
                self._greeted.add(client)
                client.sendall(_HELLO)
                return True
            verb, key, value = json.loads(line)
            if verb == "set":
                self.set(str(key), str(value))
                answer: Any = True
            elif verb == "look":
                with self._changed:
                    answer = self._values.get(str(key))
            elif verb == "add":
                answer = self.add(str(key), int(value))
            else:
                return False
            client.sendall(json.dumps(answer).encode() + b"\n")
            return True
        except (ValueError, TypeError, OSError):
            return False

    def _drop(self, client: socket.socket) -> None:
        self._selector.unregister(client)
        del self._clients[client]
        self._greeted.discard(client)
        client.close()


class StoreClient:
    """A rank's end.  OSError: nobody listens there; ServedElsewhere: who does has not greeted in so many seconds, as a c10d store never does."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=seconds)
        self._rest = b""
        try:
            self._socket.sendall(_HELLO)
            greeted = self._line() + b"\n" == _HELLO
        except (TimeoutError, ConnectionError):
            greeted = False
        self._socket.settimeout(_ANSWER_SECONDS)
        if not greeted:
            self._socket.close()
            raise ServedElsewhere(f"what listens at {host}:{port} is no store of pccl.comms")

    def set(self, key: str, value: str) -> None:
        """As `Store.set`."""
        self._ask("set", key, value)

    def get(self, key: str, seconds: float) -> str:
        """As `Store.get`."""
        until = time.monotonic() + seconds
        while True:
            value = self._ask("look", key, "")
            if value is not None:
                return str(value)
            if time.monotonic() >= until:
                raise TimeoutError(f"{key} has not come")
            time.sleep(0.01)

    def add(self, key: str, amount: int) -> Optional[int]:
        """As `Store.add`."""
        return int(self._ask("add", key, amount))

    def count(self, key: str) -> Optional[int]:
        """As `Store.count`."""
        return int(self._ask("look", key, "") or "0")

    def _ask(self, *request: Any) -> Any:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(self._line())
        except TimeoutError as error:
            raise ConnectionError(f"rank 0's store does not answer: {error}") from None

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("rank 0's store has gone")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def __del__(self) -> None:
        sock = getattr(self, "_socket", None)
        if sock is not None:
            sock.close()
