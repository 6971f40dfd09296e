"""The original's communicator: a peer of the default world, which is elastic."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import time
from typing import Any, Iterator, Optional

from pccl._native import ffi
from pccl.arguments import instance, member, text, whole
from pccl.engine import Member, Operation, World, awaited
from pccl.engine.process import Bound
from pccl.engine.tagged import reduce_many, reduce_tagged, synchronize
from pccl.errors import PCCLError
from pccl.quantization import QuantizationOptions
from pccl.reduce import AsyncReduceHandle, ReduceInfo, ReduceOpDescriptor, ReduceOperandDescriptor, describe, operands
from pccl.shared_state import SharedState, SharedStateSyncInfo
from pccl.types import Attribute, ErrorClass, ReduceOp, SharedStateSyncStrategy

#: Seconds that one attempt to connect tries to reach the master, and that lie between the beginnings of two attempts, at least.
_ATTEMPT_SECONDS = 2.0
_REST_SECONDS = 1.0


@contextlib.contextmanager
def _called(name: str) -> Iterator[None]:
    """Around a call of the engine's: its error names the method that the program has called."""
    try:
        yield
    except PCCLError as error:
        error.function = name
        raise


class Communicator(Bound):
    """A peer of the run at the master at `address`: "host:port", "1.2.3.4:5", "[::1]:5", or a host alone.

    Peers with one `peer_group` reduce and synchronise together; the topology is that of all groups.  Between each two peers there
    are `p2p_connection_pool_size` connections (0: one).  Making it connects to nobody.  Any thread may call any method.  All but
    `connect` raise `PCCLError`; what was interrupted by Ctrl-C goes on until it ends, or the communicator is destroyed.

    `world` has what the original lacks: all other collectives, messages, deadlines, who is waited for.
    """

    def __init__(self, address: str, peer_group: int = 0, p2p_connection_pool_size: int = 0) -> None:
        text("Communicator", "address", address)
        with _called("Communicator"):
            self.world = World(address, peer_group=peer_group, lanes=p2p_connection_pool_size)
        self.world.set_connect_timeout(_ATTEMPT_SECONDS)
        self._newcomer = False

    # -- Membership --

    def connect(self, n_attempts: int = 5) -> None:
        """Joins the run; blocks until the peers in it admit this one with their next update, the first one at once.

        An attempt that fails is repeated a second after it began, or as soon as it has ended.  Exception: the last one failed, or
        could not succeed later either; its cause is the `PCCLError`.  TypeError, InvalidArgument: `n_attempts` is no number of attempts.
        """
        for attempt in range(1, whole("connect", "n_attempts", n_attempts, "uint32_t") + 1):
            began = time.monotonic()
            try:
                self.world.connect()
                self._newcomer = True
                return
            except PCCLError as error:
                if attempt == n_attempts or error.error_class in (ErrorClass.FIX, ErrorClass.STOP):
                    raise Exception(f"pccl: not connected, at attempt {attempt} of {n_attempts}: {error.reason}") from error
            time.sleep(max(0.0, began + _REST_SECONDS - time.monotonic()))
        raise Exception(f"pccl: not connected, since {n_attempts} attempts were asked for")

    def update_topology(self) -> None:
        """Admits newcomers and drops the departed; all peers of all groups call it, newcomers not in their first iteration."""
        self._newcomer = False
        with _called("update_topology"):
            self.world.update()

    def are_peers_pending(self) -> bool:
        """Whether newcomers wait to be admitted; all peers of all groups call it, also while all-reduces are in flight."""
        with _called("are_peers_pending"):
            return self.world.peers_pending()

    def optimize_topology(self) -> None:
        """Measures what links can do and puts the ring in the best order; all peers of all groups call it."""
        with _called("optimize_topology"):
            self.world.optimize()

    def get_attribute(self, attribute: Attribute) -> int:
        """A size, as of the last connect, update, optimise, sync or failed all-reduce."""
        with _called("get_attribute"):
            return self.world.attribute(attribute)

    @property
    def newcomer(self) -> bool:
        """Whether this peer has called no update since it connected, be it that one of the others has admitted it, or that it is the first."""
        return self._newcomer

    @property
    def peers(self) -> list[Member]:
        """The peers that the sizes count, this one among them, with id, rank, group and address."""
        with _called("peers"):
            return self.world.members()

    # -- Shared state --

    def sync_shared_state(
        self, shared_state: SharedState, strategy: SharedStateSyncStrategy = SharedStateSyncStrategy.ENFORCE_POPULAR
    ) -> SharedStateSyncInfo:
        """Gives the tensors of all peers of the group the same content.  All peers call it.  Tensors are fully written, or unchanged."""
        instance("shared_state", shared_state, SharedState)
        how = member("strategy", strategy, SharedStateSyncStrategy)
        return SharedStateSyncInfo(*synchronize(self.world, shared_state.to_c(), how, shared_state))

    # -- All-reduce --

    def all_reduce(
        self,
        send: Any,
        recv: Any,
        *,
        op: ReduceOp,
        tag: int = 0,
        operand_descriptor: Optional[ReduceOperandDescriptor] = None,
        quantization_options: Optional[QuantizationOptions] = None,
    ) -> ReduceInfo:
        """Reduces `send` over the peer group into `recv`, which may be the same; both torch tensors, numpy arrays or buffers.

        After an error `send` is as it was (in place, too), the rest of `recv` unspecified.  OperandError: see `operands`.
        """
        with awaited:
            operation = self._launch(send, recv, op, tag, operand_descriptor, quantization_options)
        operation.wait()
        assert operation.info is not None
        return ReduceInfo.of(operation.info)

    def all_reduce_async(
        self,
        send: Any,
        recv: Any,
        *,
        op: ReduceOp,
        tag: int = 0,
        operand_descriptor: Optional[ReduceOperandDescriptor] = None,
        quantization_options: Optional[QuantizationOptions] = None,
    ) -> AsyncReduceHandle:
        """The same, launched only; `tag` is in use until the handle was waited for."""
        return AsyncReduceHandle(self._launch(send, recv, op, tag, operand_descriptor, quantization_options))

    def _launch(
        self,
        send: Any,
        recv: Any,
        op: ReduceOp,
        tag: int,
        operand: Optional[ReduceOperandDescriptor],
        quantization: Optional[QuantizationOptions],
    ) -> Operation:
        source, target = operands(send, recv)
        descriptor = describe(source, op, tag, operand, quantization).to_c()
        return reduce_tagged(self.world, source.pointer, target.pointer, descriptor, (source, target))

    def all_reduce_multiple_with_retry(self, descriptors: list[ReduceOpDescriptor], *, max_in_flight: int = 4) -> ReduceInfo:
        """Runs them, at most `max_in_flight` at once, and repeats what a loss ended until all have succeeded; the bytes are those of all.

        TooFewPeers: this peer is alone.
        """
        listed = list(descriptors)
        for descriptor in listed:
            instance("an entry of descriptors", descriptor, ReduceOpDescriptor)
        made = ffi.new("pcclReduceOpDescriptor_t[]", len(listed))
        for index, descriptor in enumerate(listed):
            descriptor.to_c_inpl(made[index])
        return ReduceInfo.of(reduce_many(self.world, made, min(max_in_flight, 2**31 - 1), listed))

    # -- End --

    def destroy(self) -> None:
        """Leaves the run and frees everything; calls in flight end with an error.  The second time nothing."""
        self.world.destroy()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __del__(self) -> None:
        world = getattr(self, "world", None)  # there is none where the address was wrong
        if world is not None:
            world.destroy()
