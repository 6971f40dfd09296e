"""The recommended loop: update, optimise, wait for peers, synchronise, step, and again what a loss has undone.

All peers of a run go through the same votes in the same order, and branch only on the results of a vote, which are the same for all.
The state of the run, including the number of the step, is shared state.  A newcomer, or a peer that was excluded and has come back,
gets it from the others and continues with their current step.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import time
from typing import Any, Callable, Iterable, Mapping, Optional, TypeVar, Union

from pccl._native import ffi
from pccl.arguments import instance, length_of_time, whole
from pccl.buffers import as_buffer
from pccl.communicator import Communicator
from pccl.errors import PCCLError, TooFewPeers, make_error
from pccl.quantization import QuantizationOptions
from pccl.reduce import ReduceInfo, ReduceOpDescriptor, ReduceOperandDescriptor, describe, operands
from pccl.shared_state import SharedState, SharedStateSyncInfo, TensorInfo
from pccl.types import Attribute, Cause, ErrorClass, ReduceOp, Result

_T = TypeVar("_T")
_POLL_SECONDS = 0.1  # between two updates, while there are too few peers


class Step:
    """The argument of the step function: facts of the step, and its operations.

    Attributes: `index`, how many steps the state has seen, 0 at first, the same on all peers; `synced`, the traffic of the
    synchronisation before it; `communicator`.
    """

    def __init__(self, communicator: Communicator, index: int, synced: SharedStateSyncInfo, may_be_alone: bool) -> None:
        self.communicator = communicator
        self.index = index
        self.synced = synced
        self._may_be_alone = may_be_alone
        self._tag = 0
        self._last = False

    @property
    def world_size(self) -> int:
        """Peers of the group, as of the last vote or failed all-reduce; the `ReduceInfo` of an all-reduce tells how many it was of."""
        return self.communicator.get_attribute(Attribute.LOCAL_WORLD_SIZE)

    def all_reduce(
        self,
        send: Any,
        recv: Any = None,
        *,
        op: ReduceOp = ReduceOp.AVG,
        operand_descriptor: Optional[ReduceOperandDescriptor] = None,
        quantization_options: Optional[QuantizationOptions] = None,
    ) -> ReduceInfo:
        """Reduces `send` into `recv` (None: in place) among the peers that are left, however many are lost meanwhile.

        All peers call the same ones in the same order.  A `PCCLError` that it raises is for `run`, which repeats the step.
        """
        if recv is None:
            recv = send
        tag = self._next_tags(1)
        while True:
            try:
                return self.communicator.all_reduce(
                    send, recv, op=op, tag=tag, operand_descriptor=operand_descriptor, quantization_options=quantization_options
                )
            except TooFewPeers:
                if not self._may_be_alone:
                    raise
                source, target = operands(send, recv)
                ffi.memmove(target.pointer, source.pointer, source.nbytes)
                return ReduceInfo(1, 0, 0)
            except PCCLError as error:
                if not _undone(error):
                    raise

    def all_reduce_many(
        self,
        tensors: Iterable[Any],
        *,
        op: ReduceOp = ReduceOp.AVG,
        operand_descriptor: Optional[ReduceOperandDescriptor] = None,
        quantization_options: Optional[QuantizationOptions] = None,
        max_in_flight: int = 16,
    ) -> ReduceInfo:
        """Reduces each of `tensors` in place, `max_in_flight` of them at a time, each among those who are left then.

        If it raises, some have been reduced.  The bytes are those of all.
        """
        descriptors = []
        for tensor in tensors:
            descriptor = describe(as_buffer(tensor, "tensor", True), op, self._next_tags(1), operand_descriptor, quantization_options)
            descriptors.append(ReduceOpDescriptor.from_buffers(tensor, tensor, descriptor))
        if not descriptors:
            return ReduceInfo(self.world_size, 0, 0)
        try:
            return self.communicator.all_reduce_multiple_with_retry(descriptors, max_in_flight=max_in_flight)
        except TooFewPeers:
            if not self._may_be_alone:
                raise
            return ReduceInfo(1, 0, 0)

    def end(self) -> None:
        """Makes this step the last one; all peers do so in the same step."""
        self._last = True

    def _next_tags(self, count: int) -> int:
        tag, self._tag = self._tag, self._tag + count
        return tag


def run(
    master: Union[str, Communicator],
    step: Callable[[Step], object],
    *,
    state: Union[None, Mapping[str, Any], Iterable[TensorInfo]] = None,
    steps: Optional[int] = None,
    start: int = 0,
    min_peers: int = 2,
    begin_with: int = 0,
    shards: int = 1,
    optimize: bool = True,
    patience: Optional[float] = None,
    n_attempts: int = 5,
) -> int:
    """Calls `step` repeatedly, together with all peers of the run at `master`, until the state has seen `steps` steps.

    With None it runs until `Step.end`.  Returns how many steps the state has seen.

    `master` is an address, or a communicator, connected or not.  `state` is all that a newcomer needs: tensors, arrays or buffers by
    name (a ``state_dict`` of tensors), or `TensorInfo` entries; they are written in place.  `step` computes from the state
    and from its own data, reduces by `Step.all_reduce`, and then changes the state: deterministically, so that all peers have the
    same.  A `PCCLError` leaves `step` if a loss has left this peer alone, or if it was excluded and has to come back.  `step` is
    called again later; so it should change the state only when its last all-reduce has succeeded.

    `start`: the step that `state` is at, if it comes from a checkpoint; where all peers come from checkpoints, the newest wins.
    `min_peers`: with fewer in its peer group no step begins; with 1 a peer goes on alone, and an all-reduce gives what it has.
    `begin_with`: the same of step 0, so that all who are started together make it together; the same number at all peers.
    `shards`: peer groups that a step needs, each as large as the largest one, as with FSDP (peer_group = rank of the shard).
    `optimize`: whether the ring is measured and put in order when peers have come or gone.
    `patience`: seconds that it waits for peers, then TooFewPeers; None: until they come, or Ctrl-C.
    `n_attempts`: to connect, and to connect again after an exclusion, as `Communicator.connect` has it.

    The caller gets other exceptions of `step`, mistakes (`ErrorClass.FIX`), the reason if the master has removed this peer, and errors
    that end the run (`ErrorClass.STOP`).  `step` may use another communicator, such as a torch group.  If this communicator has ended,
    the caller gets its error, at once or after `step` was called once more.

    TypeError, ValueError: an argument is none of these; nobody was connected to.
    """
    if not callable(step):
        raise TypeError(f"pccl: run: step is {step!r}; pass a function of one argument, a Step")
    counts = (("steps", steps), ("start", start), ("min_peers", min_peers), ("begin_with", begin_with), ("shards", shards))
    for name, number in counts:
        if number is not None:
            whole("run", name, number, "uint64_t" if name in ("steps", "start") else "uint32_t")
    patience = None if patience is None else length_of_time(patience)
    if isinstance(master, str):
        with Communicator(master) as communicator:
            return run(
                communicator, step, state=state, steps=steps, start=start, min_peers=min_peers, begin_with=begin_with, shards=shards,
                optimize=optimize, patience=patience, n_attempts=n_attempts,
            )
    instance("master", master, Communicator)
    peers = _Peers(master, min_peers, shards, optimize, patience, n_attempts)
    held = _State(master, state, start)
    peers.connect()
    while steps is None or held.index < steps:
        now: Optional[Step] = None
        try:
            peers.gather()
            synced = held.synchronize()
            if steps is not None and held.index >= steps:
                break  # the others have seen them all before this one came
            if held.index == 0 and peers.fewer_than(begin_with):
                continue
            peers.began = None
            now = Step(master, held.index, synced, min_peers < 2)
            step(now)
            held.advance()
            if now._last:
                break
        except PCCLError as error:
            if error.error_class is ErrorClass.REJOIN and error.cause not in (Cause.KICKED, Cause.LEFT):
                if now is not None and peers.connected():
                    raise  # of another communicator, that the step uses
                peers.connect()
                held.outdated()
            elif not _undone(error):
                raise
    return held.index


class _Peers:
    """The votes on who takes part."""

    def __init__(
        self, communicator: Communicator, min_peers: int, shards: int, optimize: bool, patience: Optional[float], n_attempts: int
    ) -> None:
        self.communicator = communicator
        self.min_peers = min_peers
        self.shards = shards
        self.optimize = optimize
        self.patience = patience
        self.n_attempts = n_attempts
        self.admitted = False  # by an update of the others, of which this peer must not call its own
        self.began: Optional[float] = None  # to wait for others

    def connect(self) -> None:
        """Enters the run, or comes back to it, unless it is in it."""
        if not self.connected():
            self.communicator.connect(self.n_attempts)
        self.admitted = self.communicator.newcomer

    def connected(self) -> bool:
        try:
            return self.size(Attribute.GLOBAL_WORLD_SIZE) > 0
        except PCCLError:
            return False

    def gather(self) -> None:
        """Votes until there are enough; branches on what the votes of all groups have told all peers alike."""
        while True:
            if not self.admitted:
                _vote(self.communicator.update_topology)
            self.admitted = False
            if self.optimize and self.size(Attribute.GLOBAL_WORLD_SIZE) > 1:
                self.put_in_order()
            here, everywhere = self.size(Attribute.LOCAL_WORLD_SIZE), self.size(Attribute.GLOBAL_WORLD_SIZE)
            largest = self.size(Attribute.LARGEST_PEER_GROUP_WORLD_SIZE)
            if here >= self.min_peers and everywhere >= self.shards * largest:
                return
            self.wait(f"{here} peers in this group and {everywhere} in all", f"{self.min_peers} and {self.shards * largest}")

    def fewer_than(self, begin_with: int) -> bool:
        """Whether there are fewer than the first step needs; then some time has passed."""
        here = self.size(Attribute.LOCAL_WORLD_SIZE)
        if here >= begin_with:
            return False
        self.wait(f"{here} peers in this group", f"{begin_with}, as begin_with says")
        return True

    def wait(self, there: str, needed: str) -> None:
        """A moment, unless patience is at its end."""
        now = time.monotonic()
        self.began = now if self.began is None else self.began
        if self.patience is not None and now - self.began > self.patience:
            text = f"{there} after {self.patience} s; a step needs {needed}: start more, or wait for longer"
            error = make_error(Result.TOO_FEW_PEERS, "run", text, Cause.ALONE)
            error.error_class = ErrorClass.STOP
            raise error
        time.sleep(_POLL_SECONDS)

    def put_in_order(self) -> None:
        """Where nobody is new that is a vote, and nothing is measured."""
        while self.size(Attribute.GLOBAL_WORLD_SIZE) > 1:
            try:
                return self.communicator.optimize_topology()
            except PCCLError as error:
                if not _undone(error):
                    raise

    def size(self, which: Attribute) -> int:
        return self.communicator.get_attribute(which)


class _State:
    """What the peers have in common: the program's state, and before it how many steps that has seen."""

    def __init__(self, communicator: Communicator, state: Union[None, Mapping[str, Any], Iterable[TensorInfo]], start: int) -> None:
        self.communicator = communicator
        self.seen = array.array("q", [start])
        entries = [TensorInfo.from_buffer(self.seen, "pccl.run.steps")]
        if isinstance(state, Mapping):
            entries += [TensorInfo.from_buffer(memory, name) for name, memory in state.items()]
        elif state is not None:
            entries += _entries(state)
        self.shared = SharedState(entries)
        self.shared.revision = start
        self.synchronized = False  # at this revision, so that the next time needs a higher one

    @property
    def index(self) -> int:
        return self.seen[0]

    def advance(self) -> None:
        self.seen[0] += 1

    def synchronize(self) -> SharedStateSyncInfo:
        if self.synchronized:
            self.shared.push_revision()
            self.synchronized = False
        info = _vote(lambda: self.communicator.sync_shared_state(self.shared))
        self.synchronized = True
        return info

    def outdated(self) -> None:
        """After an absence: the next time it is offered as it was, and yields to what the others have; if nobody has stayed, the
        newest wins."""
        self.synchronized = False


def _entries(state: Iterable[TensorInfo]) -> list[TensorInfo]:
    """Those of a state that is no dictionary.  TypeError: it is something else."""
    listed = list(state) if hasattr(state, "__iter__") else None
    wrong = [state] if listed is None else [entry for entry in listed if not isinstance(entry, TensorInfo)]
    if listed is None or wrong:
        what = "state" if listed is None else "an entry of state"
        raise TypeError(f"pccl: run: {what} is {wrong[0]!r}; pass a dictionary of tensors by name, or a list of TensorInfo")
    return listed


def _vote(vote: Callable[[], _T]) -> _T:
    while True:
        try:
            return vote()
        except PCCLError as error:
            if not _undone(error):
                raise


def _undone(error: PCCLError) -> bool:
    """Whether all who took part in it were told the same, nothing has changed, and all of them call again."""
    return error.error_class is ErrorClass.RETRY and error.cause is not Cause.CONFLICT
