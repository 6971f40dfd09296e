"""torch's collectives and messages as calls of the engine: one function for each, from torch's arguments to a `Call`.

Lists that may be uneven on some rank always use the engine's forms with counts, so that all ranks make the
same call for any sizes.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence

import torch

from pccl.distributed.reduce_ops import Reduction, reduction
from pccl.distributed.sparse import all_reduce_sparse
from pccl.distributed.tensors import Finish, Parts, apart, overlap, packed, plain, result_apart, span, target, unpacked
from pccl.distributed.work import Call, Refused, keep_place
from pccl.engine import ANY_RANK, Operation, World, at_once
from pccl.engine.overlaps import tangled

Tensor = torch.Tensor
Tensors = Sequence[Tensor]


class Place(NamedTuple):
    """Where a call is made from."""

    rank: int
    size: int


def _all(finishes: Sequence[Finish]) -> Finish:
    """Does them all."""
    needed = [finish for finish in finishes if finish is not None]
    if len(needed) < 2:
        return needed[0] if needed else None

    def finish() -> None:
        for one in needed:
            one()

    return finish


def _one(tensors: Any) -> Tensor:
    """The tensor of a list of one.  ValueError: not one."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"pccl: {len(tensors)} tensors were passed, where one is expected; call once for each")
    (tensor,) = tensors
    assert isinstance(tensor, Tensor)
    return tensor


def _each(place: Place, tensors: Tensors, name: str) -> Tensors:
    """A list of one tensor for each rank.  ValueError: of more, or less."""
    if len(tensors) != place.size:
        raise ValueError(f"pccl: {name} has {len(tensors)} tensors, and the group {place.size} ranks; pass one for each")
    return tensors


def _default(opts: Any) -> Any:
    """The operator of options that are not given is that of torch: SUM."""
    return torch.distributed.ReduceOp.SUM if opts is None else opts.reduceOp


# -- Everybody's results --


def _several(world: World, start: Callable[..., Operation], arguments: Iterable[tuple[Any, ...]]) -> Iterable[Operation]:
    """One after the other, as they are asked for; where there are several, none waits for the end of the one before."""
    each = list(arguments)
    return [start(*each[0])] if len(each) == 1 else _one_by_one(world, start, each)


def _one_by_one(world: World, start: Callable[..., Operation], each: Sequence[tuple[Any, ...]]) -> Iterator[Operation]:
    wrong: Optional[Exception] = None
    for one in each:
        try:
            with at_once:
                operation = start(*one)
        except Exception as error:  # noqa: B902 - raised below: the others launch what follows
            yield from keep_place(world, error)
            wrong = wrong or error
        else:
            yield operation
    if wrong is not None:
        raise Refused(wrong)


def _reduced(tensor: Tensor, how: Reduction, world: World, deadline: Optional[float]) -> Operation:
    seen = how.seen(tensor)
    return how.launch(world, seen.dtype, lambda op: world.all_reduce(seen, seen, op, deadline=deadline))


def all_reduce(place: Place, tensors: Tensors, opts: Any = None) -> Call:
    """Reduces the one tensor of all ranks in place; a sparse one, too."""
    tensor = _one(tensors)
    if tensor.is_sparse:
        return all_reduce_sparse(place.size, tensor, _default(opts), opts)
    memory, finish = target(tensor)
    how = reduction(_default(opts), tensor.dtype)
    return Call(lambda world, deadline: [_reduced(memory, how, world, deadline)], [tensor], finish, opts)


def all_reduce_coalesced(place: Place, tensors: Tensors, opts: Any = None) -> Call:
    """Reduces several tensors in place, as one operation."""
    private = tangled([((), (tensor,)) for tensor in tensors])
    targets = [target(tensor, private) for tensor in tensors]
    op = _default(opts)
    hows = [reduction(op, tensor.dtype) for tensor in tensors]

    def launch(world: World, deadline: Optional[float]) -> Iterable[Operation]:
        memories = (memory for memory, _ in targets)
        return _several(world, lambda memory, how: _reduced(memory, how, world, deadline), zip(memories, hows))

    return Call(launch, list(tensors), _all([finish for _, finish in targets]), opts)


def broadcast(place: Place, tensors: Tensors, opts: Any) -> Call:
    """The root's one tensor into everybody's."""
    tensor, root = _one(tensors), opts.rootRank
    if root == place.rank:
        memory, finish = plain(tensor), None
    else:
        memory, finish = target(tensor)
    return Call(lambda world, deadline: [world.broadcast(memory, memory, root, deadline=deadline)], [tensor], finish, opts)


def reduce(place: Place, tensors: Tensors, opts: Any) -> Call:
    """The one tensor of all ranks, reduced, into the root's; the others' are as they were."""
    tensor, root = _one(tensors), opts.rootRank
    memory, finish = target(tensor)
    how = reduction(opts.reduceOp, tensor.dtype)
    seen = how.seen(memory)
    receive = seen if root == place.rank else None

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        return [how.launch(world, seen.dtype, lambda op: world.reduce(seen, receive, root, op, deadline=deadline))]

    return Call(launch, [tensor], finish if root == place.rank else None, opts)


# -- All parts at everybody --


def _gather_list(place: Place, outputs: Tensors, tensor: Tensor, private: bool = False) -> tuple[Tensor, Parts]:
    parts = unpacked(_each(place, outputs, "the list of outputs"), private)
    return apart(plain(tensor), parts.memory, parts.byte_of(place.rank)), parts


def all_gather(place: Place, outputs: Sequence[Tensors], tensors: Tensors, opts: Any = None) -> Call:
    """Parts may differ in size from rank to rank."""
    tensor = _one(tensors)
    memory, parts = _gather_list(place, outputs[0], tensor)

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        return [world.all_gather_v(memory, parts.memory, parts.counts, parts.places, deadline=deadline)]

    return Call(launch, list(outputs[0]), parts.finish, opts)


def all_gather_coalesced(place: Place, outputs: Sequence[Tensors], tensors: Tensors, opts: Any = None) -> Call:
    """`outputs` has a list for each rank, with a tensor for each of `tensors`."""
    lists = [[of_rank[i] for of_rank in outputs] for i in range(len(tensors))]
    private = tangled([((tensor,), each) for tensor, each in zip(tensors, lists)])
    pairs = [_gather_list(place, each, tensor, private) for tensor, each in zip(tensors, lists)]

    def launch(world: World, deadline: Optional[float]) -> Iterable[Operation]:
        return _several(
            world, lambda memory, parts: world.all_gather_v(memory, parts.memory, parts.counts, parts.places, deadline=deadline), pairs
        )

    return Call(launch, [list(of_rank) for of_rank in outputs], _all([parts.finish for _, parts in pairs]), opts)


def all_gather_single(place: Place, output: Tensor, tensor: Tensor, opts: Any = None) -> Call:
    """`tensor` may be its own part of `output`."""
    return all_gather_single_coalesced(place, [output], [tensor], opts)


def all_gather_single_coalesced(place: Place, outputs: Tensors, tensors: Tensors, opts: Any = None) -> Call:
    """`all_gather_single` of several pairs, as one operation."""
    private = tangled([((tensor,), (output,)) for tensor, output in zip(tensors, outputs)])
    pairs = []
    finishes = []
    for output, tensor in zip(outputs, tensors):
        memory, finish = target(output, private)
        own = plain(tensor)
        pairs.append((apart(own, memory, place.rank * own.numel() * own.element_size()), memory))
        finishes.append(finish)

    def launch(world: World, deadline: Optional[float]) -> Iterable[Operation]:
        return _several(world, lambda own, memory: world.all_gather(own, memory, deadline=deadline), pairs)

    return Call(launch, list(outputs), _all(finishes), opts)


# -- Reduced parts --


def reduce_scatter(place: Place, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Call:
    """Parts may differ in size from rank to rank."""
    output = _one(outputs)
    memory, finish = target(output)
    how = reduction(_default(opts), output.dtype)
    each = _each(place, inputs[0], "the list of inputs")
    parts = packed(each if how.view is None else [how.seen(plain(tensor)) for tensor in each])
    result, out = result_apart(memory, parts.memory)
    seen = how.seen(result)

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        return [
            how.launch(
                world, seen.dtype, lambda op: world.reduce_scatter_v(parts.memory, seen, parts.counts, op, parts.places, deadline=deadline)
            )
        ]

    return Call(launch, [output], _all([out, finish]), opts)


def reduce_scatter_single(place: Place, output: Tensor, tensor: Tensor, opts: Any = None) -> Call:
    """`tensor` has a part as large as `output` for each rank; each gets its own, reduced."""
    return reduce_scatter_single_coalesced(place, [output], [tensor], opts)


def reduce_scatter_single_coalesced(place: Place, outputs: Tensors, tensors: Tensors, opts: Any = None) -> Call:
    """`reduce_scatter_single` of several pairs, as one operation."""
    private = tangled([((tensor,), (output,)) for tensor, output in zip(tensors, outputs)])
    calls = []
    finishes: list[Finish] = []
    for output, tensor in zip(outputs, tensors):
        memory, finish = target(output, private)
        how = reduction(_default(opts), tensor.dtype)
        whole = how.seen(plain(tensor))
        result, out = result_apart(memory, whole)
        calls.append((how, whole, how.seen(result)))
        finishes += [out, finish]

    def start(world: World, deadline: Optional[float], how: Reduction, whole: Tensor, part: Tensor) -> Operation:
        return how.launch(world, part.dtype, lambda op: world.reduce_scatter(whole, part, op, deadline=deadline))

    def launch(world: World, deadline: Optional[float]) -> Iterable[Operation]:
        return _several(world, lambda *call: start(world, deadline, *call), calls)

    return Call(launch, list(outputs), _all(finishes), opts)


# -- One rank's parts --


def gather(place: Place, outputs: Sequence[Tensors], tensors: Tensors, opts: Any) -> Call:
    """The one tensor of each rank into the root's list; the others pass no list."""
    tensor, root = _one(tensors), opts.rootRank
    if root != place.rank:
        memory = plain(tensor)
        return Call(lambda world, deadline: [world.gather_v(memory, None, None, root, deadline=deadline)], [], None, opts)
    own, parts = _gather_list(place, outputs[0], tensor)

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        return [world.gather_v(own, parts.memory, parts.counts, root, parts.places, deadline=deadline)]

    return Call(launch, list(outputs[0]), parts.finish, opts)


def gather_single(place: Place, output: Tensor, tensor: Tensor, opts: Any) -> Call:
    """The one tensor of each rank into one of the root, which has room for all along its first dimension."""
    root = opts.rootRank
    if root != place.rank:
        return gather(place, [], [tensor], opts)
    return gather(place, [list(output.chunk(place.size))], [tensor], opts)


def scatter(place: Place, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> Call:
    """Tensor r of the root's list into rank r's; the others pass no list."""
    output, root = _one(outputs), opts.rootRank
    memory, finish = target(output)
    if root != place.rank:
        return Call(lambda world, deadline: [world.scatter_v(None, None, memory, root, deadline=deadline)], [output], finish, opts)
    parts = packed(_each(place, inputs[0], "the list of inputs"))
    own = span(memory)[0] == span(parts.memory)[0] + parts.byte_of(root)
    result, out = (memory, None) if own else result_apart(memory, parts.memory)

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        return [world.scatter_v(parts.memory, parts.counts, result, root, parts.places, deadline=deadline)]

    return Call(launch, [output], _all([out, finish]), opts)


# -- Parts of everybody for everybody --


def all_to_all(place: Place, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Call:
    """Tensor r of `inputs` goes to rank r, whose own comes into tensor r of `outputs`; sizes may differ."""
    receive, send = unpacked(_each(place, outputs, "the list of outputs")), packed(_each(place, inputs, "the list of inputs"))
    return _all_to_all(receive, send, list(outputs), None, opts)


def all_to_all_single(
    place: Place, output: Tensor, tensor: Tensor, output_splits: Sequence[int], input_splits: Sequence[int], opts: Any = None
) -> Call:
    """Splits are rows of the first dimension; none: even ones."""
    memory, finish = target(output)
    whole = plain(tensor)
    receive = Parts(memory, _counts(memory, output_splits, place.size, "output"), None)
    send = Parts(whole, _counts(whole, input_splits, place.size, "input"), None)
    return _all_to_all(receive, send, [output], finish, opts)


def _all_to_all(receive: Parts, send: Parts, value: Any, finish: Finish, opts: Any) -> Call:
    if overlap(receive.memory, send.memory):
        whole = send.memory if isinstance(send.memory, Tensor) else torch.cat([piece.detach().reshape(-1) for piece in send.memory.owner])
        send = Parts(whole.detach().clone(), send.counts, None)

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        operation = world.all_to_all_v(
            send.memory, send.counts, receive.memory, receive.counts, send.places, receive.places, deadline=deadline
        )
        return [operation]

    return Call(launch, value, _all([receive.finish, finish]), opts)


def _counts(memory: Tensor, splits: Sequence[int], size: int, name: str) -> list[int]:
    """Elements for each rank.  ValueError: the splits do not make up the tensor."""
    rows = memory.shape[0] if memory.dim() else 1
    if not splits:
        if rows % size:
            raise ValueError(f"pccl: the {name} tensor has {rows} rows, which {size} ranks cannot share evenly; pass {name}_split_sizes")
        return [memory.numel() // size] * size
    if len(splits) != size or sum(splits) != rows:
        raise ValueError(f"pccl: {name}_split_sizes {list(splits)} are not {size} numbers with the sum {rows}, the {name} tensor's rows")
    return [split * (memory.numel() // rows) if rows else 0 for split in splits]


# -- Messages, and no data at all --


def send(place: Place, tensors: Tensors, peer: int, tag: int = 0) -> Call:
    """The one tensor to rank `peer`, which receives with the same `tag`."""
    memory = plain(_one(tensors))
    return Call(lambda world, deadline: [world.send(memory, peer, tag & _TAG, deadline=deadline)], [], share="sends")


def receive(place: Place, tensors: Tensors, peer: int, tag: int = 0) -> Call:
    """The one tensor from rank `peer`, which sends with the same `tag`."""
    tensor = _one(tensors)
    memory, finish = target(tensor)
    return Call(lambda world, deadline: [world.receive(memory, peer, tag & _TAG, deadline=deadline)], [tensor], finish, share="receives")


def receive_any_source(place: Place, tensors: Tensors, tag: int = 0) -> Call:
    """The one tensor from whichever rank sends with the same `tag`; the Work's `_source_rank` is whose it was."""
    return receive(place, tensors, ANY_RANK, tag)


_TAG = 2**64 - 1


# -- What cannot be called --


def refused(build: Callable[..., Call], arguments: Sequence[Any], error: Exception) -> Optional[Call]:
    """In place of what `build` raises `error` for: fails with that, and at the others, who call as many collectives.  None: they call none."""
    if build in (send, receive, receive_any_source):
        return None
    count = 1
    if build in (all_reduce_coalesced, all_gather_coalesced, all_gather_single_coalesced, reduce_scatter_single_coalesced):
        operands = arguments[1:2] if build is all_gather_coalesced else arguments[:1]
        count = len(operands[0]) if operands else 1

    def launch(world: World, deadline: Optional[float]) -> Iterable[Operation]:
        for _ in range(count):
            yield from keep_place(world, error)
        raise Refused(error)

    return Call(launch, [])


def barrier(place: Place, opts: Any = None) -> Call:
    """Ends when all ranks have called it."""
    return Call(lambda world, deadline: [world.barrier(deadline=deadline)], [], None, opts)
