"""One-sided transport between two processes: values over TCP and shared memory, keys, bounds, notifications, limits and losses."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pickle
import socket
import threading
from typing import Any, Callable

import numpy
import pytest
import torch

from pccl.comms import TorchComm, get_mem_allocator, new_comm, objcol
from pccl.comms.rdma_transport import RdmaMemory, RdmaRemoteBuffer, RdmaTransport
from support.ranks import run


def with_transport(function: Callable[[TorchComm, RdmaTransport], Any]) -> None:
    """At two ranks: a communicator to tell things by, and a transport to the other."""

    def rank() -> None:
        comm = new_comm("pccl", "cpu", "telling", timeout=30)
        transport = RdmaTransport("cpu")
        url = transport.bind()
        assert url == transport.bind() and not transport.connected()
        assert transport.connect(told(comm, url)) == 0 and transport.connected()
        function(comm, transport)
        comm.barrier()
        transport.close()
        assert not transport.connected()
        comm.finalize()

    run(2, rank)


def told(comm: TorchComm, thing: Any) -> Any:
    """The other's."""
    heard: list[Any] = [None, None]
    objcol.all_gather_object(comm, heard, pickle.dumps(thing))
    return pickle.loads(heard[1 - comm.get_rank()])


@pytest.mark.parametrize("where", ("own memory", "shared memory"))
def test_values(where: str) -> None:
    def body(comm: TorchComm, transport: RdmaTransport) -> None:
        rank = comm.get_rank()
        for count, dtype in ((1, torch.int8), (1000, torch.float32), (1 << 20, torch.int64)):
            tensor = torch.zeros(count, dtype=dtype)
            if where == "shared memory":
                tensor = get_mem_allocator("pccl").empty((count,), dtype)
            memory = RdmaMemory(tensor)
            there = told(comm, memory.to_remote_buffer())
            source = torch.arange(count, dtype=torch.int64).add(7 * rank).to(dtype)
            taken = RdmaMemory(source)
            assert transport.write(taken.to_view(), there, notify=True, timeout=20) == 0
            assert transport.wait_for_write(20) == 0
            assert torch.equal(tensor, torch.arange(count, dtype=torch.int64).add(7 * (1 - rank)).to(dtype))
            back = torch.zeros(count, dtype=dtype)
            assert transport.read(RdmaMemory(back).to_mutable_view(), there) == 0
            assert torch.equal(back, source)
            comm.barrier()
            mapped = bool(transport._maps)
            assert mapped is (where == "shared memory")
        assert transport.wait_for_write(timeout=0.05) == 8

    with_transport(body)


def test_parts_and_bounds() -> None:
    def body(comm: TorchComm, transport: RdmaTransport) -> None:
        tensor = numpy.zeros(10, numpy.int32)
        memory = RdmaMemory(tensor)
        own = memory.to_remote_buffer()
        assert all(pickle.loads(pickle.dumps(own, protocol)) == own for protocol in range(pickle.HIGHEST_PROTOCOL + 1))
        assert own.len == 40 and not memory.reused_registration() and RdmaMemory(tensor).reused_registration()
        there = told(comm, own)
        source = RdmaMemory(torch.tensor([1, 2, 3, 4], dtype=torch.int32))
        view = source.to_view(4, 8)
        assert view.size() == 8 and source.to_view(offset=12).size() == 4
        third = RdmaRemoteBuffer(there.ptr + 12, 8, there.access_key)
        assert transport.write(view, third) == 0
        comm.barrier()
        assert tensor.tolist() == [0, 0, 0, 2, 3, 0, 0, 0, 0, 0]
        for call in (lambda: source.to_view(-1), lambda: source.to_view(0, 17), lambda: source.to_mutable_view(16, 1)):
            with pytest.raises(RuntimeError, match="out of bounds"):
                call()
        with pytest.raises(RuntimeError, match="out of bounds"):
            transport.write(source.to_view(), RdmaRemoteBuffer(there.ptr, 8, there.access_key))
        with pytest.raises(TypeError, match="RdmaMemoryMutableView"):
            transport.read(view, there)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="contiguous"):
            RdmaMemory(torch.zeros(4, 4).t()[1:])
        assert transport.connected()

    with_transport(body)


@pytest.mark.parametrize("wrong", ("key", "place", "gone"))
def test_who_has_no_key_gets_nothing(wrong: str) -> None:
    def body(comm: TorchComm, transport: RdmaTransport) -> None:
        tensor = torch.zeros(4)
        memory = RdmaMemory(tensor)
        there = told(comm, memory.to_remote_buffer())
        source, target = RdmaMemory(torch.ones(4)), torch.zeros(4)
        if wrong == "gone":
            del memory
            comm.barrier()
        key = "0" * 32 if wrong == "key" else there.access_key
        bad = RdmaRemoteBuffer(there.ptr + (8 if wrong == "place" else 0), 16, key)
        call = comm.get_rank() == 0
        code = transport.write(source.to_view(), bad) if call else transport.read(RdmaMemory(target).to_mutable_view(), bad)
        assert code == 3 and not transport.connected()
        assert transport.write(source.to_view(), there) == 3  # for good
        comm.barrier()
        assert tensor.tolist() == [0] * 4 == target.tolist()

    with_transport(body)


def test_strangers_and_mistakes() -> None:
    transport, other = RdmaTransport(), RdmaTransport(torch.device("cpu"))
    assert RdmaTransport.supported()
    with pytest.raises(RuntimeError, match="host memory; pass 'cpu'"):
        RdmaTransport("cuda:0")
    memory = RdmaMemory(bytearray(4))
    with pytest.raises(RuntimeError, match="call bind first"):
        transport.connect(other.bind())
    url = transport.bind()
    with pytest.raises(RuntimeError, match="not connected"):
        transport.write(memory.to_view(), memory.to_remote_buffer())
    with pytest.raises(ValueError, match="peer_url"):
        other.connect(b"tcp://127.0.0.1:1")
    forged = url.replace(transport._token.encode(), b"0" * 32)
    with pytest.raises(RuntimeError, match="has refused"):
        other.connect(forged)
    assert other.connect(url) == 0
    with pytest.raises(RuntimeError, match="connected already"):
        other.connect(url)
    transport.close()
    assert other.write(memory.to_view(), memory.to_remote_buffer()) == 3
    other.close()
    assert other.write(memory.to_view(), memory.to_remote_buffer()) == 9 and other.wait_for_write() == 9


def test_a_peer_that_does_not_answer() -> None:
    """8 after the limit, 9 for who waits when the transport is closed."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        boot = RdmaTransport()
        url = f"pccl-rdma://127.0.0.1:{silent.getsockname()[1]}/{'0' * 32}/elsewhere".encode()
        boot.bind()
        accepted: list[socket.socket] = []

        def accept() -> None:
            peer, _ = silent.accept()
            accepted.append(peer)
            peer.sendall(b"\0")

        for expected in (8, 9):
            transport = RdmaTransport()
            transport.bind()
            thread = threading.Thread(target=accept)
            thread.start()
            assert transport.connect(url) == 0
            thread.join()
            memory = RdmaMemory(bytearray(4))
            if expected == 8:
                assert transport.read(memory.to_mutable_view(), memory.to_remote_buffer(), timeout=0.05) == 8
                assert transport.read(memory.to_mutable_view(), memory.to_remote_buffer()) == 3
            else:
                codes: list[int] = []
                reader = threading.Thread(target=lambda: codes.append(transport.read(memory.to_mutable_view(), memory.to_remote_buffer())))
                reader.start()
                while not accepted[-1].recv(1 << 16):  # the request has come
                    pass
                transport.close()
                reader.join(20)
                assert codes == [9]
            transport.close()
        for peer in accepted:
            peer.close()
        boot.close()
