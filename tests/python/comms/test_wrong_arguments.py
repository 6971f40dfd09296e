"""Wrong arguments of every call: each is refused by name, with value and remedy, and the communicator goes on."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import re
from typing import Any, Callable

import numpy as np
import pytest
import torch

from pccl.comms import (
    CommOptions, P2POp, P2POpType, ReduceOp, TorchComm, install_as_torchcomms, load_backend, new_comm, objcol, register_backend,
)
from pccl.comms.hooks import FlightRecorderHook, NanCheckHook, clog
from pccl.comms.process_group import create_process_group
from pccl.comms.rdma_transport import RdmaMemory, RdmaTransport
from support.ranks import run

Case = tuple[Callable[[], Any], type[Exception], str]


def _operations(comm: Any) -> list[Case]:
    a, total = torch.ones(4), ReduceOp.SUM
    return [
        (lambda: comm.all_reduce(None, total), TypeError, "tensor is a NoneType; pass a torch tensor"),
        (lambda: comm.all_reduce(np.float64(3), total), RuntimeError, "tensor is read-only"),
        (lambda: comm.all_reduce(torch.ones(4, device="meta"), total), RuntimeError, "on device meta"),
        (lambda: comm.all_reduce(a, None), TypeError, "op is a NoneType; pass a ReduceOp"),
        (lambda: comm.all_reduce(a, ReduceOp.PREMUL_SUM(1e300)), RuntimeError, "factor is 1e+300, more than FLOAT holds"),
        (lambda: ReduceOp.PREMUL_SUM("2"), TypeError, "factor is '2', a str; pass a number"),
        (lambda: ReduceOp.PREMUL_SUM(torch.ones(2)), TypeError, "factor is tensor([1., 1.]), a Tensor; pass a number, or a tensor of one"),
        (lambda: ReduceOp.PREMUL_SUM(10**400), RuntimeError, "factor is an integer that no float holds"),
        (lambda: comm.broadcast(a, 2**70), RuntimeError, f"root must be in range [0, 1), and is {2**70}"),
        (lambda: comm.broadcast(a, 1.5), TypeError, "root is a float; pass a rank"),
        (lambda: comm.all_gather(None, a), TypeError, "tensor_list is a NoneType; pass a list of tensors"),
        (lambda: comm.all_gather("a", a), TypeError, "tensor_list is a str; pass a list of tensors"),
        (lambda: comm.reduce_scatter(a, 5, total), TypeError, "input_list is a int; pass a list"),
        (lambda: comm.all_to_all([a], None), TypeError, "input_tensor_list is a NoneType; pass a list"),
        (lambda: comm.scatter(a, 5, 0), TypeError, "input_tensor_list is a int; pass a list"),
        (lambda: comm.gather(5, a, 0), TypeError, "output_tensor_list is a int; pass a list"),
        (lambda: comm.all_to_all_v_single(a.clone(), a, 4, [4]), TypeError, "output_split_sizes is a int; pass a list of whole numbers"),
        (lambda: comm.all_to_all_v_single(a.clone(), a, [4], [1.5]), TypeError, "input_split_sizes[0] is 1.5, a float; pass a whole number"),
        (lambda: comm.all_reduce(a, total, timeout=math.nan), RuntimeError, "timeout must be non-negative, and is nan s"),
        (lambda: comm.all_reduce(a, total, timeout="5"), TypeError, "timeout is a str; pass a timedelta"),
        (lambda: comm.all_reduce(a, total, hints=5), TypeError, "hints are a int; pass a dictionary"),
        (lambda: comm.all_reduce(a, total, hints={"a": 1}), TypeError, "hints are str to str, and 'a' is given 1"),
        (lambda: comm.all_reduce(a, total, options=5), TypeError, "options is a int; pass the options of the operation"),
        (lambda: comm.set_hints("x"), TypeError, "hints are a str; pass a dictionary"),
    ]


def _others(comm: Any) -> list[Case]:
    a = torch.ones(4)

    def batch(ops: Any, options: Any = None) -> None:
        made = comm.batch_op_create()
        made.ops = ops
        made.issue(options=options)

    to_self = [P2POp(P2POpType.SEND, a, 0), P2POp(P2POpType.RECV, torch.ones(4, dtype=torch.int32), 0)]
    work = comm.all_reduce(torch.ones(1), ReduceOp.SUM, True)
    allocator = comm.get_mem_allocator()
    return [
        (lambda: comm.split(["a"], "x"), RuntimeError, "Invalid rank in the list of rank 0 ['a']"),
        (lambda: comm.split(None, "x"), RuntimeError, "Invalid rank in the list of rank 0 [None]"),
        (lambda: comm.split([0], 5), TypeError, "name is 5, a int; pass a str"),
        (lambda: batch(None), TypeError, "ops is a NoneType; pass a list of P2POp"),
        (lambda: batch([5]), TypeError, "ops has a int; pass P2POp"),
        (lambda: batch([], 5), TypeError, "options is a int; pass the options"),
        (lambda: batch([P2POp(P2POpType.SEND, a, 1)]), RuntimeError, "peer must be in range [0, 1), and is 1"),
        (lambda: batch(to_self), RuntimeError, "must have same size and type"),
        (lambda: comm.batch_send(None, 0), TypeError, "tensors is a NoneType; pass a list"),
        (lambda: comm.register_pre_hook(None), TypeError, "callback is None, a NoneType; pass a function"),
        (lambda: comm.register_post_hook(5), TypeError, "callback is 5, a int; pass a function"),
        (lambda: comm.register_abort_hook(5), TypeError, "callback is 5, a int; pass a function"),
        (lambda: work.register_callback("end", 5), TypeError, "callback is 5, a int; pass a function"),
        (lambda: work.register_callback("after", print), ValueError, "event 'after' is none of"),
        (lambda: work.wait(math.nan), RuntimeError, "timeout must be non-negative"),
        (lambda: comm.all_gather_p_exec([], a), RuntimeError, "handle [] is none of all_gather_p_init"),
        (lambda: comm.all_gather_p_exec(9, a), RuntimeError, "handle 9 is none of all_gather_p_init"),
        (lambda: allocator.empty(-1), RuntimeError, "shape is [-1]; no length may be below 0"),
        (lambda: allocator.empty((-2, -2)), RuntimeError, "shape is [-2, -2]; no length may be below 0"),
        (lambda: allocator.empty([2, "a"]), TypeError, "shape is [2, 'a'], a list; pass a whole number"),
        (lambda: comm.get_backend_impl().init("cpu", "again", comm.get_options()), RuntimeError, "is already initialized"),
    ]


def _of_windows(comm: Any) -> list[Case]:
    window = comm.new_window(torch.zeros(8, dtype=torch.int64))
    two = torch.ones(2, dtype=torch.int64)
    return [
        (lambda: comm.new_window("a"), TypeError, "tensor is a str; pass a torch tensor"),
        (lambda: comm.new_window().put(two, 0, 0), RuntimeError, "put: a valid tensor is required; call tensor_register first"),
        (lambda: window.tensor_register(two), RuntimeError, "Double registration"),
        (lambda: window.put(two, -1, 0), RuntimeError, "dst_rank must be in range [0, 1), and is -1"),
        (lambda: window.put(two, 0, -1), RuntimeError, "16 bytes at element -1 exceeds the window size"),
        (lambda: window.put(two, 0, 2**70), RuntimeError, f"16 bytes at element {2**70} exceeds the window size"),
        (lambda: window.get(two, 0, None), TypeError, "offset is None, a NoneType; pass a whole number"),
        (lambda: window.put([1], 0, 0), TypeError, "tensor is a list; pass a torch tensor"),
        (lambda: window.fetch_add(2**70, 0, 0), RuntimeError, f"addend is {2**70}; pass a whole number from {-2**63} to {2**63 - 1}"),
        (lambda: window.fetch_add(1.5, 0, 0), TypeError, "addend is 1.5, a float; pass a whole number"),
        (lambda: window.fetch_add(1, 0, 8), RuntimeError, "8 bytes at element 8 exceeds the window size"),
        (lambda: window.signal("a"), TypeError, "peer_rank is a str; pass a rank"),
        (lambda: window.wait_signal(0, timeout=[]), TypeError, "timeout is a list; pass a timedelta"),
    ]


def _of_objects_and_hooks(comm: Any) -> list[Case]:
    from pccl.comms import functional

    of: Any = objcol
    recorder: Any = FlightRecorderHook
    a: Any = torch.ones(4)
    operators: Any = functional
    return [
        (lambda: of.all_gather_object(None, [None], 1), TypeError, "comm is None, a NoneType; pass a communicator"),
        (lambda: of.all_gather_object(comm, None, 1), TypeError, "object_list is a NoneType; pass a list"),
        (lambda: of.all_gather_object(comm, [], 1), ValueError, "object_list has 0 elements, and there are 1 ranks"),
        (lambda: of.gather_object(comm, 1, 0, []), ValueError, "object_gather_list has 0 elements, and there are 1 ranks"),
        (lambda: of.broadcast_object_list(comm, 5, 0), TypeError, "object_list is a int; pass a list"),
        (lambda: of.send_object_list(comm, 5, 0), TypeError, "object_list is a int; pass a list"),
        (lambda: recorder("a", True), TypeError, "max_entries is 'a', a str; pass a whole number"),
        (lambda: recorder(-1, True), RuntimeError, "max_entries is -1; pass a number from 0"),
        (lambda: recorder().register_with_comm(None), TypeError, "comm is None, a NoneType; pass a communicator"),
        (lambda: recorder().dump_file("x"), TypeError, "rank is 'x', a str; pass a whole number"),
        (lambda: NanCheckHook().register_with_comm(5), TypeError, "comm is 5, a int; pass a communicator"),  # type: ignore[arg-type]
        (lambda: clog(1), TypeError, "output is 1, a int; pass the path of a file"),  # type: ignore[arg-type]
        (lambda: clog("", 5), TypeError, "events is 5, a int; pass a text, or a list"),
        (lambda: operators.all_reduce(None, ReduceOp.SUM, comm), TypeError, "tensor is a NoneType; pass a torch tensor"),
        (lambda: operators.all_reduce(a, None, comm), TypeError, "op is a NoneType; pass a ReduceOp"),
        (lambda: operators.broadcast(a, 0, None), TypeError, "comm is a NoneType; pass a communicator"),
        (lambda: operators.all_to_all(None, [], comm), TypeError, "tensors is a NoneType; pass a list"),
        (lambda: create_process_group(None, "x"), TypeError, "comm is None, a NoneType; pass a communicator"),  # type: ignore[arg-type]
    ]


def _of_transports(comm: Any) -> list[Case]:
    first, second = RdmaTransport("cpu"), RdmaTransport("cpu")
    urls = first.bind(), second.bind()
    first.connect(urls[1])
    memory = RdmaMemory(torch.arange(8, dtype=torch.uint8))
    there = memory.to_remote_buffer()
    view, wrong = memory.to_view(), "pass what the peer's to_remote_buffer() has returned"
    of: Any = first
    return [
        (lambda: RdmaTransport("cuda"), RuntimeError, "device is cuda"),
        (lambda: RdmaMemory(5), TypeError, "tensor is a int; pass a torch tensor"),
        (lambda: RdmaMemory(torch.ones(0)), RuntimeError, "tensor has no elements"),
        (lambda: memory.to_view(1.5), TypeError, "offset is 1.5, a float; pass a whole number"),  # type: ignore[arg-type]
        (lambda: memory.to_view(4, 5), RuntimeError, "view of 5 bytes from byte 4 on is out of bounds"),
        (lambda: RdmaTransport().write(view, there), RuntimeError, "the transport is not connected"),
        (lambda: RdmaTransport().connect(urls[1]), RuntimeError, "the transport is not bound; call bind first"),
        (lambda: second.connect("x"), TypeError, "peer_url is 'x', a str; pass the bytes"),  # type: ignore[arg-type]
        (lambda: second.connect(b"x"), ValueError, "peer_url 'x' is none"),
        (lambda: second.connect(b"pccl-rdma://127.0.0.1:65536/" + b"a" * 32), ValueError, "is none; pass what the peer's bind has returned"),
        (lambda: first.connect(urls[1]), RuntimeError, "the transport is connected already"),
        (lambda: of.write(memory, there), TypeError, "a RdmaMemory was passed; pass a RdmaMemoryView"),
        (lambda: of.read(view, there), TypeError, "a RdmaMemoryView was passed; pass a RdmaMemoryMutableView"),
        (lambda: of.write(view, None), TypeError, wrong),
        (lambda: of.write(view, (0, 8, None)), TypeError, wrong),
        (lambda: of.write(view, (-1, 8, "key")), RuntimeError, wrong),
        (lambda: of.write(view, (0, 2**64, "key")), RuntimeError, wrong),
        (lambda: of.write(view, there._replace(len=4)), RuntimeError, "the view has 8 bytes, and the remote buffer 4"),
        (lambda: of.wait_for_write(math.nan), RuntimeError, "timeout must be non-negative, and is nan s"),
    ] + _passes(first, lambda: first.write(view, there))


def _passes(keep: Any, call: Callable[[], int]) -> list[Case]:
    """As a case: what goes on after all of them."""

    def told() -> None:
        raise RuntimeError(f"returned {call()}, connected {keep.connected()}")

    return [(told, RuntimeError, "returned 0, connected True")]


def _of_the_look_alike() -> list[Case]:
    from pccl.comms import distwrap
    from pccl.comms.device_mesh import init_device_mesh

    of: Any = distwrap
    mesh: Any = init_device_mesh
    a = torch.ones(4)
    return [
        (lambda: of.init_process_group(5, use_torchcomms=True), TypeError, "backend is 5, a int; pass a name"),
        (lambda: of.init_process_group("cpu:pccl,cpu:fake", use_torchcomms=True), ValueError, "names a device twice; write each once"),
        (lambda: of.split_group(None, 5), TypeError, "split_ranks is a int; pass a list of lists"),
        (lambda: of.split_group(None, [0]), TypeError, "split_ranks is a int; pass a list of lists"),
        (lambda: of.all_to_all_single(a, torch.ones(3)), RuntimeError, "recv_counts of this rank itself is 4: pass the same number as in send_counts"),
        (lambda: of.P2POp(of.isend, None, 0), TypeError, "tensor is a NoneType; pass a torch tensor"),
        (lambda: of.reduce_scatter_quantized(a, None), TypeError, "input is a NoneType; pass a torch tensor"),
        (lambda: of.reduce_scatter_quantized(a, torch.ones(3)), ValueError, "input has 3 elements and output 4"),
        (lambda: of.reduce_scatter_quantized(a, a, seed="x"), TypeError, "seed is 'x', a str; pass a whole number"),
        (lambda: mesh(None, ["x"]), TypeError, "mesh_dim_comms is a NoneType; pass a list of communicators"),
        (lambda: mesh([None], ["x"]), TypeError, "comm is None, a NoneType; pass a communicator"),
    ]


def _without_one() -> list[Case]:
    of: Any = new_comm
    return [
        (lambda: of(None), TypeError, "backend is None, a NoneType; pass the name of a back-end"),
        (lambda: of("pccl", "cpu", 5), TypeError, "name is 5, a int; pass a str"),
        (lambda: of("pccl", "cpu", "x", options=5), TypeError, "options is a int; pass a CommOptions"),
        (lambda: of("pccl", "cpu", "x", hints="y"), TypeError, "hints are a str; pass a dictionary"),
        (lambda: of("pccl", "cpu", "x", timeout="soon"), TypeError, "timeout is a str; pass a timedelta"),
        (lambda: of("pccl", "meta", "x"), RuntimeError, "device is meta: only CPU is supported"),
        (lambda: register_backend(5, object), TypeError, "name is 5, a int; pass a str"),  # type: ignore[arg-type]
        (lambda: register_backend("a", None), TypeError, "backend_class of 'a' is a NoneType"),  # type: ignore[arg-type]
        (lambda: load_backend("a", None), TypeError, "name is 'a' and path None; pass a str"),  # type: ignore[arg-type]
        (lambda: install_as_torchcomms(5), TypeError, "names is 5; pass a dictionary"),  # type: ignore[arg-type]
        (lambda: install_as_torchcomms({"a": 5}), TypeError, "names is {'a': 5}; pass a dictionary"),  # type: ignore[dict-item]
    ]


def _refused(cases: list[Case]) -> None:
    for call, kind, said in cases:
        with pytest.raises(kind, match=re.escape(said)):
            call()


@pytest.mark.parametrize("cases", [_operations, _others, _of_windows, _of_objects_and_hooks, _of_transports])
def test_calls_refuse_them(cases: Callable[[TorchComm], list[Case]]) -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "x", timeout=30)
        _refused(cases(comm))
        tensor = torch.ones(2)
        comm.all_reduce(tensor, ReduceOp.SUM)
        comm.barrier()
        comm.finalize()

    run(1, body)


def test_functions_refuse_them() -> None:
    run(1, lambda: _refused(_without_one()))


def test_the_look_alike_refuses_them() -> None:
    def body() -> None:
        from pccl.comms import distwrap

        first, second, *cases = _of_the_look_alike()
        _refused([first, second])
        distwrap.init_process_group("cpu:pccl", use_torchcomms=True)
        _refused(cases)
        distwrap.destroy_process_group()

    run(1, body)


def test_endless_times_are_times() -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "x", options=CommOptions(timeout=math.inf))
        comm.set_timeout(1e300)
        comm.barrier(timeout=math.inf)
        comm.finalize()

    run(1, body)


def _after(comm: Any, work: Any, window: Any, batch: Any, handle: int) -> list[Callable[[], Any]]:
    a = torch.ones(1)
    return [
        lambda: comm.all_reduce(a, ReduceOp.SUM), lambda: comm.split([0], "x"), comm.new_window, comm.barrier, comm.get_nodes,
        lambda: window.put(a, 0, 0), lambda: window.get(a, 0, 0), lambda: window.signal(0), lambda: window.wait_signal(0),
        lambda: comm.all_gather_p_exec(handle, a), batch.issue,
    ]


@pytest.mark.parametrize("end", ["finalize", "abort"])
def test_what_is_used_after_the_end_says_so(end: str) -> None:
    """A handle of C that is gone would end the interpreter."""

    def body() -> None:
        comm = new_comm("pccl", "cpu", "x", timeout=30)
        window, batch, handle = comm.new_window(torch.zeros(2)), comm.batch_op_create(), comm.all_gather_p_init(torch.zeros(1))
        work = comm.barrier(True)
        work.wait()
        batch.send(torch.ones(1), 0)
        batch.recv(torch.zeros(1), 0)
        getattr(comm, end)()
        for call in _after(comm, work, window, batch, handle):
            with pytest.raises(RuntimeError, match="is not initialized|was aborted"):
                call()
        work.wait()
        comm.abort()
        window.tensor_deregister()
        with pytest.raises(RuntimeError, match="Double deregistration"):
            window.tensor_deregister()
        comm.all_gather_p_free(handle)
        with pytest.raises(RuntimeError, match="was freed"):
            comm.all_gather_p_free(handle)
        if end == "abort":
            comm.finalize()
        with pytest.raises(RuntimeError, match="already finalized"):
            comm.finalize()

    run(1, body)
