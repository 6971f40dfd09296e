"""One-sided transport: writes and reads of registered host memory of another process, without a call of its program.

Both ends bind, tell each other their urls, and connect.  Each serves its own memory by a thread at its url, and asks at the other's.
Memory of `SharedMemoryAllocator` on the same host is mapped and copied; all other goes over TCP.  The owner checks the key each time.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import hmac
import logging
import mmap
import operator
import secrets
import socket
import struct
import threading
import time
from typing import Any, Optional

from pccl.comms.bootstrap import listening_host
from pccl.comms.options import TimeoutLike, as_seconds
from pccl.comms.rdma_memory import RdmaMemory, RdmaMemoryMutableView, RdmaMemoryView, RdmaRemoteBuffer, found
from pccl.comms.shared_memory import Segment, mapped

__all__ = ["RdmaMemory", "RdmaMemoryMutableView", "RdmaMemoryView", "RdmaRemoteBuffer", "RdmaTransport"]

logger = logging.getLogger("pccl.comms")

SUCCESS, INTERNAL_ERROR, IN_PROGRESS, TIMEOUT, DESTROYED = 0, 3, 7, 8, 9

_SCHEME = "pccl-rdma://"
_HELLO = b"pccl rdma 1\n"
_HELLO_SECONDS = 5.0
_CONNECT_SECONDS = 30.0
_MOST_STRANGERS = 64  # that have not said yet who they are
_REQUEST = struct.Struct("!B?32sQQ")   # what, whether to notify, key, address, bytes
_WHERE = struct.Struct("!QQQQQ")       # a Segment; process 0: it has none
_WRITE, _READ, _LOCATE, _NOTIFY = range(1, 5)
_DONE, _REFUSED = b"\0", b"\1"


class _Late(Exception):
    """Not in time."""


class RdmaTransport:
    """One connection to one peer.  `write`, `read` and `wait_for_write` return 0 for success, 3 after an error, which is permanent, and 9 if
    it was closed meanwhile.  They return 8 after `timeout`; a connection that was in the middle of a transfer is broken then.

    `device` is "cpu" or None.  Any thread may call; calls are put in one order.  RuntimeError: the device is no CPU.
    """

    def __init__(self, device: Any = None) -> None:
        kind = "cpu" if device is None else str(getattr(device, "type", device)).partition(":")[0]
        if kind != "cpu":
            raise RuntimeError(f"RdmaTransport: device is {device}, and this transport is for host memory; pass 'cpu'")
        self._token = secrets.token_hex(16)
        self._listener: Optional[socket.socket] = None
        self._url = b""
        self._accepted: list[socket.socket] = []
        self._peer: Optional[socket.socket] = None
        self._same_host = False
        self._maps: dict[tuple[int, int], mmap.mmap] = {}
        self._not_mapped: set[str] = set()
        self._closed = self._broken = False
        self._call = threading.Lock()
        self._changed = threading.Condition()
        self._writes = 0  # told of, and not waited for yet
        self._gone = False
        self._strangers = threading.BoundedSemaphore(_MOST_STRANGERS)

    @staticmethod
    def supported() -> bool:
        """True: it needs no device."""
        return True

    # -- Setting up --

    def bind(self) -> bytes:
        """Begins to serve, and returns the url for the peer's `connect`; the same each time.  A process that has it can connect: keep it secret."""
        if self._closed:
            raise RuntimeError("bind: the transport was closed; make a new one")
        if self._listener is None:
            host = listening_host({})
            family, _, _, _, where = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.bind(where)
                listener.listen(8)
            except OSError as error:
                listener.close()
                raise RuntimeError(f"bind: {host}: {error}; set TORCHCOMM_GLOO_HOSTNAME to an address of this host") from None
            shown = f"[{host}]" if ":" in host else host
            self._url = f"{_SCHEME}{shown}:{listener.getsockname()[1]}/{self._token}/{_boot_id()}".encode()
            self._listener = listener
            threading.Thread(target=self._accept, args=(listener,), name="pccl-rdma-accept", daemon=True).start()
        return self._url

    def connect(self, peer_url: bytes) -> int:
        """Connects to who has bound that url; returns 0.  RuntimeError: it is connected, not bound, or cannot.  ValueError: no such url."""
        if self._listener is None or self._closed:
            raise RuntimeError("connect: the transport is not bound; call bind first")
        if self._peer is not None:
            raise RuntimeError("connect: the transport is connected already; make a new one for another peer")
        host, port, token, boot = _parsed(peer_url)
        try:
            peer = socket.create_connection((host, port), _CONNECT_SECONDS)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(_HELLO + token.encode())
            answer = peer.recv(1)
        except OSError as error:
            raise RuntimeError(f"connect: peer at {host}:{port}: {error}") from None
        if answer != _DONE:
            peer.close()
            raise RuntimeError(f"connect: peer at {host}:{port} has refused: its url is another one now; bind and exchange urls again")
        self._same_host = boot == _boot_id()
        self._peer = peer
        return SUCCESS

    def connected(self) -> bool:
        """Whether `connect` has succeeded and nothing has failed since."""
        return self._peer is not None and not self._broken and not self._closed

    def close(self) -> None:
        """Ends it; what goes on at it returns 9.  The second time nothing."""
        self._closed = True
        for one in filter(None, (self._listener, self._peer, *self._accepted)):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        with self._changed:
            self._changed.notify_all()

    # -- One-sided calls --

    def write(self, view: RdmaMemoryView, remote_buffer: RdmaRemoteBuffer, notify: bool = False, timeout: TimeoutLike = None) -> int:
        """Writes the view's bytes to the beginning of the peer's buffer; they are there when it returns 0.  With `notify` the peer's
        `wait_for_write` returns.  RuntimeError: it does not fit, or the transport is not connected."""
        remote = self._checked("write", view, RdmaMemoryView, remote_buffer)
        with self._calling(timeout) as call:
            there = call.mapped(remote, view.size())
            if there is not None:
                there[:] = view._bytes()
                if notify:
                    call.ask(_NOTIFY, remote, 0, True)
            else:
                call.ask(_WRITE, remote, view.size(), notify, view._bytes())
        return call.code

    def read(self, mutable_view: RdmaMemoryMutableView, remote_buffer: RdmaRemoteBuffer, timeout: TimeoutLike = None) -> int:
        """Reads as many bytes as the view has from the beginning of the peer's buffer.  RuntimeError: as `write`."""
        remote = self._checked("read", mutable_view, RdmaMemoryMutableView, remote_buffer)
        with self._calling(timeout) as call:
            there = call.mapped(remote, mutable_view.size())
            if there is not None:
                mutable_view._bytes()[:] = there
            else:
                call.ask(_READ, remote, mutable_view.size(), False)
                call.receive(mutable_view._bytes())
        return call.code

    def wait_for_write(self, timeout: TimeoutLike = None) -> int:
        """Waits for a `write` with `notify` of the peer; n of them are enough for n waits."""
        seconds = as_seconds(timeout)
        with self._changed:
            in_time = self._changed.wait_for(lambda: self._writes > 0 or self._closed or self._gone, seconds)
            if self._writes > 0:
                self._writes -= 1
                return SUCCESS
            return DESTROYED if self._closed else INTERNAL_ERROR if in_time else TIMEOUT

    def _checked(self, name: str, view: Any, kind: Any, remote: Any) -> RdmaRemoteBuffer:
        if not isinstance(view, kind):
            raise TypeError(f"{name}: a {type(view).__name__} was passed; pass a {kind.__name__}")
        buffer = _remote(name, remote)
        if view.size() > buffer.len:
            raise RuntimeError(f"{name}: the view has {view.size()} bytes, and the remote buffer {buffer.len}: out of bounds; pass a part")
        if self._peer is None:
            raise RuntimeError(f"{name}: the transport is not connected; bind, exchange urls and connect first")
        return buffer

    def _calling(self, timeout: TimeoutLike) -> "_Call":
        assert self._peer is not None
        return _Call(self, self._peer, as_seconds(timeout))

    # -- Serving --

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            if not self._strangers.acquire(blocking=False):
                peer.close()
                continue
            threading.Thread(target=self._serve, args=(peer,), name="pccl-rdma-serve", daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        known = False
        try:
            peer.settimeout(_HELLO_SECONDS)
            if not hmac.compare_digest(_exactly(peer, len(_HELLO) + len(self._token)), _HELLO + self._token.encode()):
                return
            peer.settimeout(None)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted.append(peer)
            self._strangers.release()
            known = True
            peer.sendall(_DONE)
            while self._answer(peer):
                pass
        except OSError:  # it has gone, or this end was closed
            pass
        finally:
            peer.close()
            if not known:
                self._strangers.release()
            else:
                with self._changed:
                    self._gone = True
                    self._changed.notify_all()

    def _answer(self, peer: socket.socket) -> bool:
        """One request; false: it was none that can be answered."""
        what, notify, key, address, length = _REQUEST.unpack(_exactly(peer, _REQUEST.size))
        place = found(key.decode("ascii", "replace"), address, length)
        if place is None:
            if what == _WRITE:
                _discard(peer, length)
            peer.sendall(_REFUSED)
            return False
        if what == _WRITE:
            _fill(peer, place.view)
        if notify:
            with self._changed:
                self._writes += 1
                self._changed.notify_all()
        if what == _READ:
            peer.sendall(_DONE)
            peer.sendall(place.view)
        elif what == _LOCATE:
            peer.sendall(_DONE + _WHERE.pack(*(place.segment or (0, 0, 0, 0, 0))))
        else:
            peer.sendall(_DONE)
        return True


class _Call:
    """One call of a transport, as a block: `code` is what it returns."""

    def __init__(self, transport: RdmaTransport, peer: socket.socket, seconds: Optional[float]) -> None:
        self._transport, self._peer = transport, peer
        self._until = None if seconds is None else time.monotonic() + seconds
        self._seconds = seconds
        self.code = SUCCESS

    def __enter__(self) -> "_Call":
        transport = self._transport
        if not transport._call.acquire(timeout=-1 if self._seconds is None else self._seconds):
            self._locked = False
            self.code = TIMEOUT
        else:
            self._locked = True
            if transport._closed or transport._broken:
                self.code = DESTROYED if transport._closed else INTERNAL_ERROR
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        transport = self._transport
        if isinstance(error, (OSError, _Late)):
            late = isinstance(error, (_Late, TimeoutError))
            transport._broken = True
            self.code = DESTROYED if transport._closed else TIMEOUT if late else INTERNAL_ERROR
            if not transport._closed:
                logger.warning("rdma transport: %s; it is broken for good", "the peer has not answered in time" if late else error)
        if self._locked:
            transport._call.release()
        return isinstance(error, (OSError, _Late))

    def _limit(self) -> None:
        rest = None if self._until is None else self._until - time.monotonic()
        if rest is not None and rest <= 0:
            raise _Late
        self._peer.settimeout(rest)

    def ask(self, what: int, remote: RdmaRemoteBuffer, length: int, notify: bool, payload: Any = b"") -> None:
        """A request and its answer.  OSError: it was refused, or the connection is lost.  Nothing where the call has failed already."""
        if self.code != SUCCESS:
            return
        self._limit()
        self._peer.sendall(_REQUEST.pack(what, notify, remote.access_key.encode("ascii")[:32], remote.ptr, length))
        self._limit()
        self._peer.sendall(payload)
        self._limit()
        if _exactly(self._peer, 1) != _DONE:
            raise ConnectionRefusedError("the peer has no memory registered under that access key, or not there")

    def receive(self, into: memoryview) -> None:
        """What follows the answer."""
        if self.code == SUCCESS:
            self._limit()
            _fill(self._peer, into)

    def mapped(self, remote: RdmaRemoteBuffer, length: int) -> Optional[memoryview]:
        """The peer's bytes in this process; None: by TCP."""
        transport = self._transport
        if self.code != SUCCESS or not transport._same_host or remote.access_key in transport._not_mapped:
            return None
        self.ask(_LOCATE, remote, length, False)
        segment = Segment(*_WHERE.unpack(_exactly(self._peer, _WHERE.size)))
        key, end = (segment.device, segment.inode), segment.offset + length
        memory = transport._maps.get(key)
        if memory is None or len(memory) < end:
            memory = mapped(segment, length) if segment.pid else None
            if memory is None:
                transport._not_mapped.add(remote.access_key)
                return None
            transport._maps[key] = memory
        return memoryview(memory)[segment.offset:end]


def _fill(peer: socket.socket, into: memoryview) -> None:
    while into:
        count = peer.recv_into(into)
        if count == 0:
            raise ConnectionResetError("the peer has closed the connection")
        into = into[count:]


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray(count)
    _fill(peer, memoryview(data))
    return bytes(data)


def _discard(peer: socket.socket, count: int) -> None:
    scratch = memoryview(bytearray(min(count, 1 << 16)))
    while count:
        part = scratch[:min(count, len(scratch))]
        _fill(peer, part)
        count -= len(part)


def _boot_id() -> str:
    """The same for processes on one host that runs."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return secrets.token_hex(16)


def _remote(name: str, remote: Any) -> RdmaRemoteBuffer:
    """TypeError: it is of another form.  RuntimeError: its numbers or its key cannot be."""
    try:
        buffer = RdmaRemoteBuffer(*remote)
        fits = 0 <= operator.index(buffer.ptr) < 2**64 and 0 <= operator.index(buffer.len) < 2**64 and buffer.access_key.isascii()
    except (TypeError, AttributeError):
        raise TypeError(f"{name}: remote_buffer is {remote!r}; pass what the peer's to_remote_buffer() has returned") from None
    if not fits:
        raise RuntimeError(f"{name}: remote_buffer is {remote!r}, which is of no memory; pass what the peer's to_remote_buffer() has returned")
    return buffer


def _parsed(url: Any) -> tuple[str, int, str, str]:
    if not isinstance(url, (bytes, bytearray, memoryview)):
        raise TypeError(f"peer_url is {url!r}, a {type(url).__name__}; pass the bytes that the peer's bind has returned")
    text = bytes(url).decode("ascii", "replace")
    where, _, rest = text.removeprefix(_SCHEME).partition("/")
    token, _, boot = rest.partition("/")
    host, _, port = where.rpartition(":")
    if not text.startswith(_SCHEME) or not port.isdigit() or int(port) > 65535 or len(token) != 32:
        raise ValueError(f"peer_url {text!r} is none; pass what the peer's bind has returned")
    return host.strip("[]"), int(port), token, boot
