"""The c10d bridge: a communicator as a process group of torch, for DDP, FSDP2, tensor parallel and all of `torch.distributed`.

Each call is one operation of the communicator, so that its hooks run once for it.  No method that issues an operation raises.  An
operation that cannot be done is a work that has failed: a raise inside a backward pass would leave torch's wrappers broken.

Between `_start_coalescing` and `_end_coalescing`, sends and receives become one batch, and their tags do not count.  PyTorch imports this
module while it imports `torch.distributed`: only names of C++ can be used before a call.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import threading
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from torch._C import _distributed_c10d as in_cpp

from pccl.comms import torch_switch
from pccl.comms.backend import TorchCommBackend
from pccl.comms.arguments import communicator
from pccl.comms.batch import P2POp, P2POpType
from pccl.comms.bridged_window import BridgedWindow
from pccl.comms.communicator import TorchComm
from pccl.comms.options import BatchP2POptions
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.sparse import all_reduce_sparse
from pccl.comms.work import TorchWork
from pccl.engine.completion import step_aside
from pccl.engine.overlaps import check_result, tangled
from pccl.engine.roll_call import roll_call
from pccl.engine.untraced import untraced

_DEFAULT_SECONDS = 600.0
_BARRIER_TAG = 2**63

Tensor = torch.Tensor
_ProcessGroup: Any = in_cpp.ProcessGroup
_Options: Any = in_cpp.Backend.Options


class BackendWrapperOptions(_Options):  # type: ignore[misc]  # of C++
    """torch's options of a group: its back-end's name and its timeout; `torchcomms` calls it `_BackendWrapperOptions`."""

    def __init__(self, backend: str = "torchcomm", timeout: datetime.timedelta = datetime.timedelta(seconds=_DEFAULT_SECONDS)) -> None:
        super().__init__(backend, timeout)


@untraced
class WorkWrapper(in_cpp.Work):
    """torch's handle of one or several works; of none until its bracket has been closed."""

    def __init__(self, finite_waits: bool) -> None:
        super().__init__()
        self._finite_waits = finite_waits
        self._works: list[Any] = []  # of the communicator, or such handles
        self._in_bracket = False
        self._copies: list[tuple[Tensor, Tensor]] = []
        self._finish: Callable[[], None] = lambda: None
        self._value: Any = []
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()
        self._over = False
        self._raw: Any = None
        self._future: Any = None
        self.seconds = _DEFAULT_SECONDS  #: that each of them may take

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Waits; raises how it failed.  RuntimeError: a finite wait, under a name whose back-end has none."""
        seconds = timeout.total_seconds() if timeout is not None else 0.0
        if seconds > 0 and not self._finite_waits:
            raise RuntimeError("wait timeout not supported by this back-end; wait without one")
        if self._in_bracket:
            raise RuntimeError("wait: the message is not on its way yet; call _end_coalescing first")
        if not self._over:
            error: Optional[BaseException] = None
            for work in self._works:
                try:
                    work.wait(timeout if seconds > 0 else None)
                except TimeoutError:
                    raise
                except Exception as failed:
                    error = error or failed
            self._end(error)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        if not self._over and not self._in_bracket and all([work.is_completed() or work.exception() is not None for work in self._works]):
            self._end(next((work.exception() for work in self._works if work.exception() is not None), None))
        return self._over

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[BaseException]:
        """Its error, when it has ended with one."""
        self.is_completed()
        return self._error

    def result(self) -> Any:
        """Its tensors, when it has ended."""
        self.wait()
        return self._value

    def get_future(self) -> Any:
        """Of its tensors; completed where its end is seen."""
        with self._lock:
            first = self._future is None
            if first:
                self._raw = torch.futures.Future()
                self._future = self._raw.then(lambda raw: raw.value())  # a stored exception becomes a real one, which DDP needs
            over = self._over
        if first and over:
            self._resolve()
        elif not over:
            step_aside()  # where a callback asks for one, it may wait for it
            if first:
                self.register_callback("end", self._look)
        return self._future

    def register_callback(self, event: str, callback: Callable[[Any], None]) -> None:
        """Has `callback` called as each of its works does."""
        for work in self._works:
            work.register_callback(event, callback)

    def _look(self, _: Any) -> None:
        self.is_completed()

    def _end(self, error: Optional[BaseException]) -> None:
        with self._lock:
            if self._over:
                return
            if error is None:
                for target, source in self._copies:
                    target.copy_(source)
                self._finish()
            self._error, self._over, self._copies = error, True, []
            told = self._raw is not None
        if told:
            self._resolve()

    def _resolve(self) -> None:
        if self._error is None:
            self._raw.set_result(self._value)
        else:
            self._raw.set_exception(self._error)


@untraced
class BackendWrapper(_ProcessGroup):  # type: ignore[misc]  # its stubs know other names, and no constructor
    """A communicator as a process group; `torchcomms` calls it `_BackendWrapper`."""

    def __init__(self, comm: TorchComm, group_name: str = "") -> None:
        super().__init__(comm.get_rank(), comm.get_size())
        self._comm = comm
        self._group_name = group_name or comm.get_name()
        self._description = "undefined"
        self._seconds = _DEFAULT_SECONDS
        self._ended = False
        self._issued = 0
        self._store: Any = None
        self._bracket: Optional[list[tuple[WorkWrapper, Optional[P2POp]]]] = None
        torch_switch.records_itself(comm.get_backend())

    # -- Who it is --

    def get_comm(self) -> TorchComm:
        """The communicator."""
        return self._comm

    def get_mem_allocator(self) -> Any:
        """The communicator's."""
        return self._comm.get_mem_allocator()

    def name(self) -> str:
        """The back-end's name, as it was asked for."""
        return self._comm.get_backend()

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return "custom"  # as torch calls what is none of its own; of "gloo" it would want the object in C++

    def getRank(self) -> int:  # noqa: N802
        return self._comm.get_rank()

    def getSize(self) -> int:  # noqa: N802
        return self._comm.get_size()

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._group_name = name

    def getGroupName(self) -> str:  # noqa: N802
        return self._group_name

    def setGroupDesc(self, text: str) -> None:  # noqa: N802
        self._description = text

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def _get_backend(self, device: Any) -> Any:
        return self

    get_backend = _get_backend

    supports_splitting = supports_coalescing = supports_reconfigure = supports_abort_hooks = False

    @property
    def supports_window(self) -> bool:
        """Whether the communicator's back-end has windows."""
        return type(self._comm._backend).new_window is not TorchCommBackend.new_window

    def new_window(self, tensor: Optional[Tensor] = None) -> BridgedWindow:
        """Collective: a window, with this rank's tensor if that is given."""
        return BridgedWindow(self._comm.new_window(tensor), self._one)

    def _one(self, work: TorchWork) -> WorkWrapper:
        wrapper = WorkWrapper(self._comm._mask.finite_waits)
        wrapper._works = [work]
        return wrapper

    @property
    def options(self) -> BackendWrapperOptions:
        """Back-end and timeout."""
        return BackendWrapperOptions(self._comm.get_backend(), datetime.timedelta(seconds=self._seconds))

    def get_group_store(self) -> Any:
        """A store of torch's, which this group does not need."""
        if self._store is None:
            self._store = in_cpp.HashStore()
        return self._store

    def _start_coalescing(self, device: Any = None) -> None:
        """Opens a bracket.  RuntimeError: one is open."""
        if self._bracket is not None:
            raise RuntimeError("_start_coalescing was called twice; call _end_coalescing first")
        self._bracket = []

    def _end_coalescing(self, device: Any = None) -> WorkWrapper:
        """Closes it: the work of all that was issued in it, finished if that was nothing.  RuntimeError: none is open."""
        bracket, self._bracket = self._bracket, None
        if bracket is None:
            raise RuntimeError("_end_coalescing was called without _start_coalescing")
        messages = [(work, op) for work, op in bracket if op is not None]
        if messages:
            ops = [op for _, op in messages]
            batch: Any = self._issue([], None, lambda w, s: [self._comm._issue_batch(ops, True, BatchP2POptions(None, s))])
            for work, _ in messages:
                work._works, work._in_bracket = [batch], False
        together = WorkWrapper(self._comm._mask.finite_waits)
        together._works = [work for work, _ in bracket]
        together._value = [tensor for work, _ in bracket for tensor in work._value]
        return together

    def _set_sequence_number_for_group(self) -> None:
        """Nothing: all begin with 0."""

    def _get_sequence_number_for_group(self) -> int:
        return self._issued

    # -- Its life --

    def _set_default_timeout(self, timeout: datetime.timedelta) -> None:
        """Of operations without one, from now on."""
        self._seconds = timeout.total_seconds()

    set_timeout = _set_default_timeout

    def _verify_work_timeout(self, work: Any, timeout: datetime.timedelta) -> bool:
        """Whether a work of this group was issued with that timeout."""
        return isinstance(work, WorkWrapper) and abs(work.seconds - timeout.total_seconds()) < 1e-6

    def shutdown(self) -> None:
        """Finalizes the communicator; the second time nothing."""
        if not self._ended:
            self._ended = True
            try:
                self._comm.finalize()
            except RuntimeError:  # it was, or what failed has been told
                pass

    def abort(self) -> None:
        """Aborts the communicator; any number of times."""
        self._comm.abort()

    def split(self, store: Any, ranks: Sequence[int], opts: Any) -> Optional["BackendWrapper"]:
        """A group of the listed ranks; None for others.  The store is not needed."""
        child = self._comm.split(list(ranks) if self._comm.get_rank() in ranks else [], opts.group_name)
        return None if child is None else BackendWrapper(child)

    def split_group(
        self, ranks: Sequence[int], timeout: Optional[datetime.timedelta] = None, opts: Any = None, group_name: str = "",
        group_desc: Optional[str] = None, device_types: Any = None,
    ) -> Optional["BackendWrapper"]:
        """Collective: the group of the listed ranks, None for others; torch's own groups come of it with `use_torchcomms`."""
        listed = list(ranks) if self._comm.get_rank() in ranks else []
        comm = self._comm.split(listed, group_name, timeout=timeout)
        if comm is None:
            return None
        child = BackendWrapper(comm, group_name)
        child._description = group_desc or f"{self._description}:split"
        child._seconds = timeout.total_seconds() if timeout is not None else self._seconds
        return child

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier that names who has not come in time: rank 0 hears from each, then answers.  RuntimeError at rank 0: they."""
        limit = timeout if isinstance(timeout, datetime.timedelta) else getattr(timeout, "timeout", None)
        seconds = limit.total_seconds() if limit is not None and limit > datetime.timedelta() else self._seconds
        comm, word = self._comm, torch.zeros(1)
        if comm.get_rank() != 0:
            comm._message("send", word, 0, _BARRIER_TAG, True, seconds).wait()
            comm._message("recv", word, 0, _BARRIER_TAG, True, seconds).wait()
            return
        text = roll_call(
            comm.get_size(), lambda peer: comm._message("recv", torch.zeros(1), peer, _BARRIER_TAG, True, seconds),
            lambda peer: comm._message("send", word, peer, _BARRIER_TAG, True, seconds), wait_all_ranks, round(seconds * 1000),
        )
        if text:
            raise RuntimeError(text)

    # -- Calls --

    def _issue(self, value: Any, opts: Any, begin: Callable[[WorkWrapper, float], Sequence[TorchWork]]) -> WorkWrapper:
        wrapper = WorkWrapper(self._comm._mask.finite_waits)
        wrapper._value = value
        self._issued += 1
        limit = getattr(opts, "timeout", None)
        wrapper.seconds = limit.total_seconds() if limit is not None and limit > datetime.timedelta() else self._seconds
        try:
            wrapper._works = list(begin(wrapper, wrapper.seconds))
        except Exception as error:  # raised by its wait
            wrapper._end(error)
        if self._bracket is not None:
            self._bracket.append((wrapper, None))
        if wrapper._error is not None:
            return wrapper
        if opts is not None and not getattr(opts, "asyncOp", True) and value == []:  # a barrier blocks the thread
            _quietly(wrapper)
        return wrapper

    def allreduce(self, tensors: Any, opts: Any = None) -> WorkWrapper:
        (tensor,) = _single(tensors)
        if tensor.is_sparse:

            def begin(wrapper: WorkWrapper, seconds: float) -> list[TorchWork]:
                works, wrapper._finish = all_reduce_sparse(self._comm, tensor, _operator(opts), seconds)
                return works

            return self._issue([tensor], opts, begin)
        return self.allreduce_coalesced(_single(tensors), opts)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> WorkWrapper:
        def begin(wrapper: WorkWrapper, seconds: float) -> list[TorchWork]:
            op = _operator(opts)
            private = tangled(((), (tensor,)) for tensor in tensors)
            return [self._comm.all_reduce(_written(wrapper, tensor, private), op, True, timeout=seconds) for tensor in tensors]

        return self._issue(list(tensors), opts, begin)

    def broadcast(self, tensors: Any, opts: Any = None) -> WorkWrapper:
        (tensor,) = _single(tensors)
        return self._issue([tensor], opts, lambda w, s: [self._comm.broadcast(_written(w, tensor), opts.rootRank, True, timeout=s)])

    def reduce(self, tensors: Any, opts: Any = None) -> WorkWrapper:
        (tensor,) = _single(tensors)
        return self._issue(
            [tensor], opts, lambda w, s: [self._comm.reduce(_written(w, tensor), opts.rootRank, _operator(opts), True, timeout=s)]
        )

    def allgather(self, outputs: Any, tensors: Any, opts: Any = None) -> WorkWrapper:
        (tensor,), (listed,) = _single(tensors), _single(outputs)
        return self._issue(
            [list(listed)], opts,
            lambda w, s: [self._comm.all_gather_v([_written(w, out) for out in listed], tensor.contiguous(), True, timeout=s)],
        )

    def allgather_coalesced(self, outputs: Any, tensors: Any, opts: Any = None) -> WorkWrapper:
        def begin(wrapper: WorkWrapper, seconds: float) -> list[TorchWork]:
            lists = [[of_rank[i] for of_rank in outputs] for i in range(len(tensors))]
            private = tangled(((tensor,), listed) for tensor, listed in zip(tensors, lists))
            return [
                self._comm.all_gather_v([_written(wrapper, one, private) for one in listed], tensor.contiguous(), True, timeout=seconds)
                for tensor, listed in zip(tensors, lists)
            ]

        return self._issue([list(of_rank) for of_rank in outputs], opts, begin)

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> WorkWrapper:
        return self.all_gather_single_coalesced([output], [tensor], opts)

    def all_gather_single_coalesced(self, outputs: Any, tensors: Any, opts: Any = None) -> WorkWrapper:
        def begin(wrapper: WorkWrapper, seconds: float) -> list[TorchWork]:
            private = tangled(((tensor,), (output,)) for tensor, output in zip(tensors, outputs))
            return [
                self._comm.all_gather_single(_written(wrapper, output, private), tensor.contiguous(), True, timeout=seconds)
                for output, tensor in zip(outputs, tensors)
            ]

        return self._issue(list(outputs), opts, begin)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> WorkWrapper:
        (output,), (listed,) = _single(outputs), _single(inputs)
        pieces = [piece.contiguous() for piece in listed]
        return self._issue(
            [output], opts, lambda w, s: [self._comm.reduce_scatter_v(_written(w, output), pieces, _operator(opts), True, timeout=s)]
        )

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> WorkWrapper:
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, tensors: Any, opts: Any = None) -> WorkWrapper:
        def begin(wrapper: WorkWrapper, seconds: float) -> list[TorchWork]:
            op = _operator(opts)
            private = tangled(((tensor,), (output,)) for tensor, output in zip(tensors, outputs))
            return [
                self._comm.reduce_scatter_single(_written(wrapper, output, private), tensor.contiguous(), op, True, timeout=seconds)
                for output, tensor in zip(outputs, tensors)
            ]

        return self._issue(list(outputs), opts, begin)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> WorkWrapper:
        pieces = [piece.contiguous() for piece in inputs]
        return self._issue(
            list(outputs), opts, lambda w, s: [self._comm.all_to_all([_written(w, out) for out in outputs], pieces, True, timeout=s)]
        )

    def all_to_all_single(self, output: Any, tensor: Any, output_splits: Any, input_splits: Any, opts: Any = None) -> WorkWrapper:
        def begin(wrapper: WorkWrapper, seconds: float) -> list[TorchWork]:
            size = self._comm.get_size()
            rows_out = list(output_splits) or _even("output", output, size)
            rows_in = list(input_splits) or _even("input", tensor, size)
            given = tensor.contiguous()
            return [self._comm.all_to_all_v_single(_written(wrapper, output), given, rows_out, rows_in, True, timeout=seconds)]

        return self._issue([output], opts, begin)

    def gather(self, outputs: Any, tensors: Any, opts: Any = None) -> WorkWrapper:
        (tensor,) = _single(tensors)
        listed = outputs[0] if self._comm.get_rank() == opts.rootRank else []
        return self._issue(
            [list(listed)], opts,
            lambda w, s: [self._comm.gather([_written(w, out) for out in listed], tensor.contiguous(), opts.rootRank, True, timeout=s)],
        )

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> WorkWrapper:
        (output,) = _single(outputs)
        listed = [piece.contiguous() for piece in inputs[0]] if self._comm.get_rank() == opts.rootRank else []
        return self._issue([output], opts, lambda w, s: [self._comm.scatter(_written(w, output), listed, opts.rootRank, True, timeout=s)])

    def _message(self, kind: P2POpType, tensor: Tensor, peer: int) -> Optional[WorkWrapper]:
        """In a bracket: what will be of its batch; else None."""
        if self._bracket is None:
            return None
        wrapper = WorkWrapper(self._comm._mask.finite_waits)
        wrapper._in_bracket, wrapper._value = True, [tensor]
        carried = tensor.contiguous() if kind is P2POpType.SEND else _written(wrapper, tensor)
        self._bracket.append((wrapper, P2POp(kind, carried, peer)))
        return wrapper

    def send(self, tensors: Any, peer: int, tag: int = 0) -> WorkWrapper:
        (tensor,) = _single(tensors)
        return self._message(P2POpType.SEND, tensor, peer) or self._issue([tensor], None, lambda w, s: [self._comm._message("send", tensor.contiguous(), peer, tag, True, s)])

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> WorkWrapper:
        (tensor,) = _single(tensors)
        return self._message(P2POpType.RECV, tensor, peer) or self._issue([tensor], None, lambda w, s: [self._comm._message("recv", _written(w, tensor), peer, tag, True, s)])

    def barrier(self, opts: Any = None) -> WorkWrapper:
        return self._issue([], opts, lambda w, s: [self._comm.barrier(True, timeout=s)])

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced


def _quietly(work: WorkWrapper) -> None:
    try:
        work.wait()
    except Exception:  # the caller's wait raises it
        pass


def _single(values: Any) -> Any:
    """A list of one.  ValueError: of none or several."""
    listed = [values] if isinstance(values, Tensor) else list(values)
    if len(listed) != 1:
        raise ValueError(f"Only single tensors are supported, and {len(listed)} were passed; call once for each")
    return listed


def _written(wrapper: WorkWrapper, tensor: Tensor, private: bool = False) -> Tensor:
    """Memory for an operation to write; copied at the end where the tensor is not contiguous, or the memory has to be `private`."""
    if tensor.is_contiguous():
        if not private:
            return tensor
        staged = tensor.detach().clone()
        wrapper._copies.append((tensor.detach(), staged))
        return staged
    check_result(tensor)
    staged = tensor.detach().contiguous()
    wrapper._copies.append((tensor.detach(), staged))
    return staged


def _even(name: str, tensor: Tensor, size: int) -> list[int]:
    rows = tensor.shape[0] if tensor.dim() else 1
    if rows % size:
        raise ValueError(f"the {name} tensor has {rows} rows, which {size} ranks cannot share evenly; pass {name}_split_sizes")
    return [rows // size] * size


def _operator(opts: Any) -> ReduceOp:
    if opts is None:
        return ReduceOp.SUM
    op = opts.reduceOp
    for kind in RedOpType:
        if kind is not RedOpType.PREMUL_SUM and op == getattr(dist.ReduceOp, kind.name):
            return ReduceOp(kind)
    if op == dist.ReduceOp.PREMUL_SUM:
        return ReduceOp.PREMUL_SUM(op.factor)
    raise RuntimeError(f"reduction {op} is none of SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR, AVG, PREMUL_SUM")


def create_process_group(
    comm: TorchComm, group_name: str, backend_str: str = "torchcomm", global_ranks_mapping: Optional[dict[int, int]] = None
) -> BackendWrapper:
    """Wraps a communicator and enters it among torch's groups; `global_ranks_mapping`: rank of the default group to rank here."""
    communicator("create_process_group", comm)
    c10d: Any = dist.distributed_c10d
    group = BackendWrapper(comm, group_name)
    mapping = global_ranks_mapping or {rank: own for own, rank in enumerate(comm.get_ranks())}
    c10d._register_pg_in_world(
        group, backend_name=backend_str, store=torch._C._distributed_c10d.HashStore(), group_name=group_name,
        backend_config=f"cpu:{backend_str}", rank_mapping=mapping, add_to_default_tag=True,
    )
    return group
