"""Numbers, texts and times that C does not have: each is refused by name, with value and remedy, and nothing has happened."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest
import torch
from support.master import Master
from support.worlds import in_world

import pccl
from pccl.engine import Window, World
from pccl.engine.address import parse_address
from pccl.errors import InvalidArgument
from pccl.types import DataType, ReduceOp

U32, U64 = f"from 0 to {2**32 - 1}", f"from 0 to {2**64 - 1}"


def test_a_world_cannot_be_made_of_them(master: Master) -> None:
    address = master.address
    for what in ("size", "rank", "peer_group", "lanes"):
        for number in (-1, 2**32):
            with pytest.raises(InvalidArgument, match=f"{what} is {number}; pass a whole number {U32}"):
                World(address, **{what: number})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"{what} is 1.5, a float; pass a whole number {U32}"):
            World(address, **{what: 1.5})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="port is 99999; pass one from 0 to 65535"):
        parse_address("127.0.0.1", 99999)
    texts: list[tuple[str, Callable[[Any], Any]]] = [
        ("master", World), ("name", lambda name: World(address, name=name)), ("net", lambda net: World(address, net=net)),
    ]
    for what, make in texts:
        with pytest.raises(TypeError, match=f"{what} is None, a NoneType; pass a str"):
            make(None)
        with pytest.raises(ValueError, match=f"{what} is 'a.x00b'; leave the NUL out"):
            make("a\0b")
    with pytest.raises(InvalidArgument, match="pass one that UTF-8 can write"):
        World(address, name="\ud800")
    with pytest.raises(TypeError, match="loss_rule is 'end', a str"):
        World(address, loss_rule="end")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'soon', a str, is no length of time; pass seconds, or None"):
        World(address, stall="soon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nan s is no length of time"):
        World(address, formation_timeout=math.nan)


def _calls(world: World, window: Window) -> list[tuple[Callable[[], Any], str]]:
    """Calls with a number that is too small or too large, and what is said of it."""
    a, two = np.ones(4, np.float32), np.ones(8, np.float32)
    return [
        (lambda: world.broadcast(a, a, -1), f"root is -1; pass a whole number {U32}"),
        (lambda: world.broadcast(a, a, 2**40), f"root is {2**40}; pass a whole number {U32}"),
        (lambda: world.reduce(a, a, 2**32), f"root is {2**32}; pass a whole number {U32}"),
        (lambda: world.scatter(two, a, -1), "root is -1"),
        (lambda: world.gather(a, two, -1), "root is -1"),
        (lambda: world.all_reduce(a, a, -1), f"op is -1; pass a whole number {U32}"),
        (lambda: world.reduce_scatter(two, a, 2**32), "op is 4294967296"),
        (lambda: world.all_gather_v(a, two, [4, -4]), f"element 1 of counts of receive is -4; pass a whole number {U64}"),
        (lambda: world.all_gather_v(a, two, [4, 4], [0, 2**70]), f"element 1 of places of receive is {2**70}; pass a whole"),
        (lambda: world.scatter_v(two, [-1, 4], a, 0), "element 0 of counts of send is -1"),
        (lambda: world.send(a, -1), f"rank is -1; pass a whole number {U32}"),
        (lambda: world.send(a, 1 - world.rank, -1), f"tag is -1; pass a whole number {U64}"),
        (lambda: world.receive(a, 2**32), "rank is 4294967296"),
        (lambda: world.receive(a, 1 - world.rank, 2**64), f"tag is {2**64}; pass"),
        (lambda: world.create_from_list([-1]), f"element 0 of peers is -1; pass a whole number {U64}"),
        (lambda: world.create_from_list([world.me.id], tag=2**64), f"tag is {2**64}; pass"),
        (lambda: world.split(0, 2**31), f"key is {2**31}; pass a whole number from {-2**31} to {2**31 - 1}"),
        (lambda: world.split(2**31), f"color is {2**31}; pass"),
        (lambda: world.duplicate(lanes=-1), f"lanes is -1; pass a whole number {U32}"),
        (lambda: Window(world, nbytes=-5), f"nbytes is -5; pass a whole number {U64}"),
        (lambda: Window(world, nbytes=8, rights=-1), "rights is -1; pass"),  # type: ignore[arg-type]
        (lambda: window.put(a, -1), "rank is -1; pass"),
        (lambda: window.get(a, 0, -8), f"offset is -8; pass a whole number {U64}"),
        (lambda: window.fetch_add(2**70, 0), f"addend is {2**70}; pass a whole number from {-2**63} to {2**63 - 1}"),
        (lambda: window.fetch_add(-1, 0, 0, DataType.UINT32), f"addend is -1; pass a whole number {U32}"),
        (lambda: window.compare_swap(0, 2**63, 0), f"desired is {2**63}; pass"),
        (lambda: window.signal(-1), "rank is -1; pass"),
        (lambda: window.wait_signal(2**32), "rank is 4294967296; pass"),
        (lambda: window.part(-1), "rank is -1; pass"),
        (lambda: window.view(-1), "rank is -1; pass"),
        (lambda: world.premul_sum(1e300, DataType.FLOAT).__enter__(), "factor is 1e.300, more than FLOAT holds; pass a smaller one"),
        (lambda: world.premul_sum(7e4, DataType.FLOAT16).__enter__(), "factor is 70000.0, more than FLOAT16 holds"),
        (lambda: world.premul_sum(3.4e38, DataType.BFLOAT16).__enter__(), "factor is 3.4e.38, more than BFLOAT16 holds"),
    ]


def _of_other_types(world: World, window: Window) -> list[tuple[Callable[[], Any], str]]:
    any_: Any = world
    of_window: Any = window
    a = np.ones(4, np.float32)
    return [
        (lambda: any_.broadcast(a, a, 1.5), f"root is 1.5, a float; pass a whole number {U32}"),
        (lambda: any_.broadcast(a, a, None), "root is None, a NoneType; pass"),
        (lambda: any_.all_reduce(a, a, "sum"), "op is 'sum', a str; pass a ReduceOp"),
        (lambda: any_.all_gather_v(a, a, ["a", "b"]), "element 0 of counts of receive is 'a', a str; pass"),
        (lambda: any_.all_gather_v(a, a, 4), "counts of receive is 4, a int; pass a list"),
        (lambda: any_.create_from_list(["a"]), "element 0 of peers is 'a', a str; pass"),
        (lambda: any_.split("red"), "color is 'red', a str; pass"),
        (lambda: any_.premul_sum("a", DataType.FLOAT).__enter__(), "factor is 'a', a str; pass a number"),
        (lambda: any_.barrier(deadline="soon"), "'soon', a str, is no length of time; pass seconds"),
        (lambda: any_.attribute(1), "attribute is 1; pass one of Attribute: GLOBAL"),
        (lambda: of_window.put(a, 0, 1.5), "offset is 1.5, a float; pass"),
        (lambda: of_window.fetch_add(1.5, 0), "addend is 1.5, a float; pass"),
    ]


def test_calls_refuse_them(master: Master) -> None:
    def member(world: World) -> None:
        window = Window(world, nbytes=64)
        for call, said in _calls(world, window):
            with pytest.raises(InvalidArgument, match=said):
                call()
        for call, said in _of_other_types(world, window):
            with pytest.raises(TypeError, match=said):
                call()
        for seconds in (math.nan, -1):
            with pytest.raises(ValueError, match=f"{seconds} s is no length of time"):
                world.barrier(deadline=seconds)
        operation = world.barrier()  # none of these took a turn
        with pytest.raises(ValueError, match="nan s is no length of time"):
            operation.wait(math.nan)
        operation.wait()
        window.destroy()

    in_world(master.address, 2, member)


def test_whole_numbers_of_libraries_are_whole_numbers(master: Master) -> None:
    """A rank that is a numpy number or a tensor's element."""

    def member(world: World) -> None:
        for root in (np.int64(1), torch.tensor(1), True):
            out = np.full(2, world.rank, np.int32)
            world.broadcast(out, out, root).wait()  # type: ignore[arg-type]
            assert (out == 1).all()
        out = np.zeros(2, np.int32)
        world.all_gather_v(np.full(1, world.rank, np.int32), out, np.array([1, 1]), list(torch.tensor([1, 0]))).wait()  # type: ignore[arg-type]
        assert out.tolist() == [1, 0]

    in_world(master.address, 2, member)


def test_descriptors_and_states_refuse_them() -> None:
    memory = np.zeros(4, np.float32)
    with pccl.Communicator("127.0.0.1:1") as communicator:
        for tag in (-1, 2**64):
            with pytest.raises(InvalidArgument, match=f"tag is {tag}; pass a whole number {U64}"):
                communicator.all_reduce(memory, memory, op=ReduceOp.SUM, tag=tag)
    entry = pccl.TensorInfo("w", memory.ctypes.data, numel=-4, dtype=DataType.FLOAT, device_type=pccl.DeviceType.CPU, allow_content_inequality=False)
    with pytest.raises(InvalidArgument, match="numel of 'w' is -4; pass a whole number"):
        pccl.SharedState([entry])
    state = pccl.SharedState([pccl.TensorInfo.from_numpy(memory, "w")])
    with pytest.raises(InvalidArgument, match=f"revision is -1; pass a whole number {U64}"):
        state.revision = -1
