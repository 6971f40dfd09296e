"""The process group that torch gets: a `ProcessGroup` in Python, over one world of the engine.

Each of torch's collectives is a line of `CALLS`, from its names to the function that makes a call of the engine of its arguments.  No method
that issues something raises: what cannot be done is a Work that has failed, since a raise inside of a backward pass would leave
torch's wrappers broken.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import copy
import os
import sys
import threading
import weakref
from datetime import timedelta
from typing import Any, Callable, Iterable, NoReturn, Optional, Sequence, get_args

import torch
import torch.distributed as dist

from pccl.distributed import calls, farewell, forms, static_ranks
from pccl.distributed.deadlines import Deadlines, waited_for
from pccl.distributed.formation import Formation
from pccl.distributed.options import Options
from pccl.distributed.reconfiguration import Place, first_handle, not_begun, one_backend, place_of, world_at
from pccl.distributed.rendezvous import given_master
from pccl.distributed.weak import weakly
from pccl.distributed.work import Call, Share, Work
from pccl.engine import Operation, World, at_once, awaited
from pccl.engine.backlog import MOST, Backlog
from pccl.engine.meeting import Record
from pccl.engine.roll_call import roll_call
from pccl.engine.untraced import untraced
from pccl.errors import PCCLError, make_error
from pccl.types import Cause, ErrorClass, LossRule, Result

_HOOK_SECONDS = 0.5
_BARRIER_TAG = 2**63  # and above, one for each monitored barrier: a late message of one is not taken for the next
_ErrorType = torch._C._distributed_c10d.ErrorType
#: Losses of a rank, in whose texts programs look for the words that other back-ends have.
_CLOSED = (Cause.PEER_LOST, Cause.PEER_LEFT, Cause.PEER_SILENT, Cause.LINK_LOST, Cause.NO_PROGRESS)
_ERROR_TYPES = {Cause.DEADLINE: _ErrorType.TIMEOUT, Cause.REVOKED: _ErrorType.REMOTE_ERROR}


class Group(dist.ProcessGroup):
    """A group of torch.  `world` is the engine's, once it has begun; `where` is where other processes find it; `failure` the last error."""

    def __init__(
        self, rank: int, size: int, timeout: timedelta, options: Options, make: Callable[["Group"], World], background: bool,
        own_master: Callable[[], str],
    ) -> None:
        """`make` returns its world, connected; `own_master` the address of a master that this process starts, if it has not."""
        super().__init__(rank, size)  # type: ignore[call-arg,unused-ignore]  # 2.13's stubs know another constructor
        self.options = options
        self.failure: Optional[PCCLError] = None
        self.where: Optional[Record] = None
        self._pid = os.getpid()
        self._rank, self._size = rank, size
        self._timeout = timeout
        self._extra = timedelta()
        weak = weakref.ref(self)
        self._deadlines = Deadlines(
            lambda: _flying(weak()), weakly(self._give_up), weakly(self._timed_out)
        )
        self._backlogs = self._new_backlogs()
        self._name = self._desc = ""
        self.known: dict[int, int] = {}  # the members' ranks at the beginning by their ids, when the program last looked
        self._default = not background
        self._error_type = _ErrorType.SUCCESS
        self._ending = threading.Lock()
        self._ended_by = ""  # why a timeout has ended it
        self._issued = 0
        self._barriers = 0
        self.store: Any = None
        self._derived: dict[tuple[int, ...], int] = {}
        self._ended: Optional[World] = None  # revoked, and not freed yet
        self._given_master = given_master(options)
        self.own_master = own_master
        self._handle = first_handle(self._given_master)
        self._uuids: set[int] = set()
        self._changes: set[Formation] = set()  # reconfigurations under way
        self._abort_hooks: dict[int, Callable[[], None]] = {}
        if options.reconfigurable:
            self._formation = Formation.none(not_begun(), weakly(self._launch))
        else:
            self._formation = Formation(lambda: self._made(make), weakly(self._launch), background, timeout.total_seconds())

    def __del__(self) -> None:
        """A group that is dropped leaves, so that the others need not find out."""
        if hasattr(self, "_formation"):
            with contextlib.suppress(Exception):
                if self.own():
                    self.leave(None)

    def _made(self, make: Callable[["Group"], World]) -> World:
        world = make(self)
        world.set_operation_deadline(self._timeout.total_seconds())
        with contextlib.suppress(PCCLError):  # it may be over already: what is called says so
            self.known = {member.id: member.key for member in world.members()}
        return world

    def _new_backlogs(self) -> dict[Share, Backlog]:
        """Those of one world."""
        return {share: Backlog(MOST, self._deadlines.entered) for share in get_args(Share)}

    @property
    def world(self) -> Optional[World]:
        """The engine's world, for what torch has no name for; None before it has begun, and after the end."""
        return self._formation.world

    @property
    def no_world(self) -> str:
        """Why there is none."""
        error = self._formation.error
        return getattr(error, "text", str(error))

    @property
    def timeout(self) -> timedelta:
        """The timeout of an operation without its own."""
        return self._timeout

    # -- Issuing --

    def issue(self, build: Callable[..., Call], arguments: tuple[Any, ...], named: dict[str, Any]) -> Work:
        """Makes the call of torch's arguments and launches it."""
        work = Work(self._note, self._waits)
        self._issued += 1
        try:
            if os.getpid() != self._pid:
                raise make_error(Result.INVALID_USAGE, build.__name__, f"this process was forked of {self._pid}, whose group it is; make one here")
            call = self._built(build, arguments, named)
            work.prepare(call)
            waits = call.opts is not None and not call.opts.asyncOp
            with awaited if waits else at_once:
                self._formation.submit(work)
        except Exception as error:  # noqa: B902 - raised by wait
            work.end(error)
            return work
        if waits:
            work.drive()
        return work

    def _built(self, build: Callable[..., Call], arguments: tuple[Any, ...], named: dict[str, Any]) -> Call:
        try:
            arguments = forms.arguments_of(build, arguments, named)
            return build(self._place(), *arguments)
        except Exception as error:  # noqa: B902 - of any argument
            call = calls.refused(build, arguments, error)
            if call is None:
                raise
            return call

    def _launch(self, work: Work, world: World) -> None:
        opts = work.opts
        deadline: Optional[float] = None
        if opts is not None and opts.timeout != self._timeout and opts.timeout > timedelta():
            deadline = opts.timeout.total_seconds()
        if self._extra:
            deadline = (deadline or self._timeout.total_seconds()) + self._extra.total_seconds()
            self._extra = timedelta()
        told = opts is None or opts.asyncOp
        work.begin(world, deadline, told)
        self._backlogs[work.share].submit(work)

    def _note(self, work: Work, error: Exception) -> Exception:
        """An operation has failed; returns what to raise."""
        if not isinstance(error, PCCLError):
            return error
        late = self._deadlines.late(work.operations, error.cause is Cause.DEADLINE)
        if self.options.loss_rule is LossRule.END and error.cause in (Cause.PEER_LEFT, Cause.CONFLICT):
            error = self._left(error)
        elif late is not None and error.cause in (Cause.DEADLINE, Cause.LEFT, Cause.REVOKED):
            error = _retold(error, f"{self._deadlines.text(late)}: {error.text}", Cause.DEADLINE)
        elif self._ended_by and error.cause is Cause.LEFT:
            error = _retold(error, self._ended_by, Cause.REVOKED)
        elif self.options.loss_rule is LossRule.END and error.peer in self.known and error.result is Result.RANK_CONNECTION_LOST:
            error = _retold(error, f"rank {self.known[error.peer]}: {error.text}", error.cause)
        if error.cause in _CLOSED and error.result is Result.RANK_CONNECTION_LOST:
            error = _retold(error, f"Connection closed by peer: {error.text}", error.cause)
        self.failure = copy.copy(error)  # without a traceback, whose variables have this group
        gone = error.result is Result.MASTER_CONNECTION_FAILED and error.cause is not Cause.LEFT
        if error.result is not Result.RANK_CONNECTION_LOST and not gone:
            return error
        if self._error_type == _ErrorType.SUCCESS:
            self._error_type = _ERROR_TYPES.get(error.cause, _ErrorType.COMM_ERROR)
        if error.cause is Cause.DEADLINE and self.options.reconfigurable:
            self._end(f"{error.function} {error.text if late is None else self._deadlines.text(late)}")
        return error

    def _give_up(self, operation: Operation) -> None:
        """Beyond its timeout, and a rank does not answer: no longer is waited for it, and all are told, if the group may end."""
        if self.options.loss_rule is LossRule.END and self.world is not None:
            if self._error_type == _ErrorType.SUCCESS:
                self._error_type = _ErrorType.TIMEOUT
            self._end(f"{operation.name} {self._deadlines.text(operation)}")

    def _timed_out(self, operation: Operation) -> None:
        """An operation has failed at its deadline, and nobody may be waiting for it."""
        if self._error_type == _ErrorType.SUCCESS:
            self._error_type = _ErrorType.TIMEOUT
        if self.options.reconfigurable:
            self._end(f"{operation.name} {self._deadlines.text(operation)}")

    def _end(self, why: str) -> None:
        """Ends the group because of a timeout; once, whichever thread sees it first."""
        with self._ending:
            if self._ended_by:
                return
            self._ended_by = f"this group is over, since {why}"
        self._abort(make_error(Result.RANK_CONNECTION_LOST, "process group", f"{self._ended_by}; make a new one", Cause.REVOKED))

    def _waits(self, work: Work) -> str:
        world = self.world
        return "" if world is None else f" in {work.name}{waited_for(world)}" if work.name else " for room to begin"

    def _left(self, error: PCCLError) -> PCCLError:
        """Where nobody else votes, who waits in a vote for this one is leaving: it will not come to what was called here."""
        who = f"rank {self.known[error.peer]}" if error.peer in self.known else "a rank"
        then = "which is over with that" if error.cause is Cause.PEER_LEFT else "and a call needed it"
        text = f"{who} has left this group, {then}: {error.text}"
        return _retold(error, text, Cause.PEER_LEFT)

    # -- Who is in it --

    def _place(self) -> calls.Place:
        """Rank and size: those of its creation; in a group that shrinks, as they are now."""
        world = self.world
        if world is None or self.options.loss_rule is not LossRule.SHRINK:
            return calls.Place(self._rank, self._size)
        return calls.Place(world.rank, world.size)

    def getRank(self) -> int:
        """This process's rank; in a group that shrinks, as ranks are now."""
        if self.options.loss_rule is LossRule.SHRINK:
            static_ranks.refuse_fsdp(sys._getframe(1))
        return self._place().rank

    def getSize(self) -> int:
        """How many ranks there are; in a group that shrinks, how many are left."""
        return self._place().size

    def getBackendName(self) -> str:
        """The name "pccl", always."""
        return "pccl"

    def setGroupName(self, name: str) -> None:
        """torch's name for it, which it tells."""
        self._name = name

    def getGroupName(self) -> str:
        """The name that torch has given it."""
        if self.options.loss_rule is LossRule.SHRINK:
            static_ranks.refuse_mesh(sys._getframe(1))
        return self._name

    def setGroupDesc(self, text: str) -> None:
        """torch's description of it."""
        self._desc = text

    def getGroupDesc(self) -> str:
        """The description that torch has given it."""
        return self._desc

    # -- Its life --

    def count_of(self, ranks: Sequence[int]) -> int:
        """How many groups of these ranks have been made from this one, including the group that is made now.  The number names the group
        on all of its ranks, whatever other groups each has made before.  (The name of torch counts all groups of a process.)"""
        count = self._derived[tuple(ranks)] = self._derived.get(tuple(ranks), 0) + 1
        return count

    def ended_without(self, ranks: Sequence[int]) -> bool:
        """Whether its world has ended because a rank outside of `ranks` has left it."""
        try:
            if self.world is not None:
                self.world.members()
        except PCCLError as error:
            return error.cause is Cause.PEER_LEFT and self.known.get(error.peer) not in (None, *ranks)
        return False

    def set_timeout(self, timeout: timedelta) -> None:
        """Of operations that are issued from now on.  ValueError: below 0."""
        if timeout < timedelta():
            raise ValueError(f"pccl: timeout is {timeout.total_seconds():g} s; pass one that is not negative")
        if self.world is not None:
            self.world.set_operation_deadline(timeout.total_seconds())
        self._timeout = timeout

    def _add_ephemeral_timeout(self, timeout: timedelta) -> None:
        """The next operation has so much more."""
        self._extra = timeout

    def get_error(self) -> Any:
        """The first cause, as torch's ErrorType."""
        return self._error_type

    def abort(self) -> None:
        """Ends the group for all of its ranks, after the hooks; never blocks.  A reconfiguration may follow."""
        self._abort(_closed("this group was aborted here"))

    def _abort(self, why: PCCLError) -> None:
        for hook in list(self._abort_hooks.values()):
            thread = threading.Thread(target=hook, name="pccl-abort-hook", daemon=True)  # one that blocks or raises stops nothing
            thread.start()
            thread.join(_HOOK_SECONDS)
        world = self._formation.close(why)
        if world is not None:
            world.revoke()
            self._ended = world

    def shutdown(self) -> None:
        """Leaves; the second time, and in a forked child, nothing."""
        if not self.own():
            return
        self.leave(self._timeout.total_seconds())
        if self._default:
            farewell.finish()

    def own(self) -> bool:
        """Whether it is this process's, which was not forked of that."""
        return os.getpid() == self._pid

    def leave(self, patience: Optional[float]) -> None:
        """The same: in the background, with the others if they come within that many seconds, or a little longer; None: at once."""
        why = "this group was shut down here, by destroy_process_group or at the end of the program"
        for change in self._changes:
            came = None if change.over else change.close(_closed(why))
            if came is not None:
                came.destroy()
        world = self._close(why)
        ended, self._ended = self._ended, None
        if ended is not None:
            ended.destroy()
        if world is not None and patience is not None and self.options.loss_rule is LossRule.END:
            farewell.begin(world, patience)
        elif world is not None:
            world.destroy()

    def register_abort_hook(self, number: int, hook: Callable[[], None]) -> None:
        """Has `abort` call it before the group ends."""
        self._abort_hooks[number] = hook

    def unregister_abort_hook(self, number: int) -> None:
        """Has `abort` call it no longer."""
        self._abort_hooks.pop(number, None)

    @property
    def supports_reconfigure(self) -> bool:
        """Whether it was made with ``Options(reconfigurable=True)``."""
        one_backend(self)
        return self.options.reconfigurable

    def get_reconfigure_handle(self) -> str:
        """This process's, which others name it by; another one after each reconfiguration."""
        one_backend(self)
        if not self._handle.master:
            self._handle = self._handle._replace(master=self.own_master())
        return str(self._handle)

    def reconfigure(self, opts: Any) -> Work:
        """A Work that ends when the new group has begun.  RuntimeError, and nothing has happened: handles that cannot be."""
        one_backend(self)
        if not self.options.reconfigurable:
            raise make_error(Result.INVALID_USAGE, "reconfigure", "the group was not made for it; pass Options(reconfigurable=True)")
        place = place_of(self._handle, opts)
        timeout = self._timeout if opts.timeout is None else opts.timeout

        def make(_: Group) -> World:
            if place.rank == 0 and not self._given_master:
                self.own_master()  # it may have ended, as nobody has needed it
            return world_at(place, opts.uuid, opts.uuid in self._uuids, timeout, self.options)

        work = Work(lambda _, error: error)  # its failure is none of the group's
        work.prepare(Call(lambda world, _: self._begin_anew(formation, place, opts.uuid), [], share="reconfigurations"))
        self._changes = {change for change in self._changes if not change.over}
        formation = Formation(lambda: self._made(make), weakly(self._launch), True, timeout.total_seconds())
        self._changes.add(formation)
        formation.submit(work)
        return work

    def _begin_anew(self, formation: Formation, place: Place, number: int) -> list[Any]:
        """The new world has begun: from now on it is this group's, and the old one is left."""
        old = self._close("this group was reconfigured") or self._ended
        self._ended = None
        self._backlogs = self._new_backlogs()  # what waits for room in the old world fails there
        self._formation, self._rank, self._size, self.where = formation, place.rank, place.size, place.where
        self._handle = self._handle._replace(uuid=str(number))
        self._uuids.add(number)
        self._error_type, self.failure, self._ended_by = _ErrorType.SUCCESS, None, ""
        if old is not None:
            old.destroy()
        return []

    def _close(self, text: str) -> Optional[World]:
        return self._formation.close(_closed(text))

    # -- What torch asks of a group, where a base class in C++ has no answer --

    supports_splitting = False
    supports_coalescing = False
    supports_window = False
    supports_abort_hooks = True
    supports_time_estimate = False
    supports_completion_hooks = False

    def new_window(self, tensor: Optional[torch.Tensor] = None) -> NoReturn:
        """Raises: a group of this package has no windows."""
        raise NotImplementedError("a group of pccl.distributed has no windows: use new_window() of a communicator of pccl.comms")

    def _no_hooks(self, number: int, hook: Optional[Callable[[Any], None]] = None) -> NoReturn:
        """Raises: a group of this package calls no hooks of collectives."""
        raise NotImplementedError(
            "a group of pccl.distributed calls no hooks of collectives: make it PyTorch's own group with "
            "Options(as_backend=True), from PyTorch 2.15 on, or use the hooks of a communicator of pccl.comms"
        )

    register_pre_hook = unregister_pre_hook = register_post_hook = unregister_post_hook = _no_hooks

    @property
    def _device_types(self) -> list[torch.device]:
        """None where torch would attach a flight recorder that needs a back-end in C++; object collectives are on the CPU with none, too."""
        return [] if hasattr(torch._C._distributed_c10d, "FlightRecorderHook") else [torch.device("cpu")]

    def _get_backend(self, device: Any) -> Any:
        """A group is its own."""
        return self

    get_backend = _get_backend

    def _start_coalescing(self, device: Any = None) -> None:
        """Nothing: operations that are issued one after the other travel together."""

    def _end_coalescing(self, device: Any = None) -> Any:
        """Nothing to wait for; torch takes that."""

    def _set_sequence_number_for_group(self) -> None:
        """Nothing: all begin with 0."""

    def _get_sequence_number_for_group(self) -> int:
        return self._issued

    def _wait_for_pending_works(self) -> None:
        """Works are waited for one by one."""

    use_pg_for_symm_mem_rendezvous = False

    def get_group_store(self) -> Any:
        """The store that the group was made with; a group that has been split off has none."""
        return self.store

    def split_group(self, *_: Any, **__: Any) -> Any:
        """InvalidUsage: this group is not torch's own."""
        raise make_error(Result.INVALID_USAGE, "split_group", "this group cannot be split; use torch.distributed.new_group")

    def merge_remote_group(self, *_: Any, **__: Any) -> Any:
        """InvalidUsage: the members of a group are named when it is made, or by `reconfigure`."""
        text = "this group cannot be merged with another one; use pccl.distributed.reconfigure"
        raise make_error(Result.INVALID_USAGE, "merge_remote_group", text)

    def monitored_barrier(self, timeout: Optional[timedelta] = None, wait_all_ranks: bool = False) -> None:
        """A barrier in which rank 0 hears from each other rank, then answers all of them.

        RuntimeError at rank 0: the first rank that did not come in time; with `wait_all_ranks`, all such ranks.  Elsewhere: no answer came.
        """
        timeout = self._timeout if timeout is None else timeout
        self._barriers += 1
        rank, size = self.getRank(), self.getSize()
        milliseconds = timeout // timedelta(milliseconds=1)
        limit = f"in {milliseconds} ms"
        if not timeout:
            raise RuntimeError(f"pccl: Rank {rank} timed out in monitoredBarrier, which was to be over {limit}; pass a longer timeout")
        word = torch.zeros(1)
        if rank:
            try:
                self._barrier_word(calls.send, word, 0, timeout).wait()
                self._barrier_word(calls.receive, word, 0, timeout).wait()
            except RuntimeError as error:
                text = f"pccl: rank {rank} is in monitoredBarrier, and rank 0 has not answered {limit}; its error names who is missing"
                raise RuntimeError(f"{text}: {error}") from error
            return
        text = roll_call(
            size, lambda peer: self._barrier_word(calls.receive, torch.zeros(1), peer, timeout),
            lambda peer: self._barrier_word(calls.send, word, peer, timeout), wait_all_ranks, milliseconds,
        )
        if text:
            raise RuntimeError(f"pccl: {text}")

    def _barrier_word(self, build: Callable[..., Call], tensor: torch.Tensor, peer: int, timeout: timedelta) -> Work:
        def timed(place: calls.Place) -> Call:
            return build(place, [tensor], peer, _BARRIER_TAG + self._barriers)._replace(opts=forms.CallOptions(None, timeout=timeout))

        return self.issue(timed, (), {})


def _flying(group: Optional[Group]) -> Iterable[Operation]:
    """What is under way in a group; nothing, once that is gone."""
    return () if group is None else (operation for backlog in group._backlogs.values() for operation in backlog.flying())


def _closed(text: str) -> PCCLError:
    return make_error(Result.INVALID_USAGE, "process group", f"{text}; make a new one", Cause.LEFT)


def _retold(error: PCCLError, text: str, cause: Cause) -> PCCLError:
    """The same, as the loss that it is to a program."""
    told = make_error(Result.RANK_CONNECTION_LOST, error.function, text, cause)
    told.error_class = error.error_class if cause is error.cause else ErrorClass.REJOIN
    told.peer, told.rank, told.address = error.peer, error.rank, error.address
    told.tag, told.phase, told.age = error.tag, error.phase, error.age
    return told


#: torch's names, older and newer ones, and what they call.
CALLS: dict[Callable[..., Call], tuple[str, ...]] = {
    calls.all_reduce: ("allreduce", "allreduce_sparse"),
    calls.all_reduce_coalesced: ("allreduce_coalesced",),
    calls.broadcast: ("broadcast",),
    calls.reduce: ("reduce",),
    calls.all_gather: ("allgather",),
    calls.all_gather_coalesced: ("allgather_coalesced",),
    calls.all_gather_single: ("all_gather_single", "_allgather_base"),
    calls.all_gather_single_coalesced: ("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
    calls.gather: ("gather",),
    calls.gather_single: ("gather_single", "gather_into_tensor"),
    calls.scatter: ("scatter",),
    calls.reduce_scatter: ("reduce_scatter",),
    calls.reduce_scatter_single: ("reduce_scatter_single", "_reduce_scatter_base"),
    calls.reduce_scatter_single_coalesced: ("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"),
    calls.all_to_all: ("alltoall",),
    calls.all_to_all_single: ("all_to_all_single", "alltoall_base"),
    calls.send: ("send",),
    calls.receive: ("recv",),
    calls.receive_any_source: ("recv_anysource",),
    calls.barrier: ("barrier",),
}


def _issuing(build: Callable[..., Call]) -> Callable[..., Work]:
    def method(self: Any, *arguments: Any, **named: Any) -> Work:
        work: Work = self.issue(build, arguments, named)
        return work

    method.__doc__ = build.__doc__
    return method


def with_calls(face: type) -> None:
    """Gives a class all of torch's names for what is issued, as methods that call its `issue`."""
    for build, names in CALLS.items():
        for name in names:
            setattr(face, name, _issuing(build))


with_calls(Group)
untraced(Group)
