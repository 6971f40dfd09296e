"""The operations of a communicator: messages and collectives, with what their arguments have to be."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from pccl.comms import arguments as check
from pccl.comms.backend import TorchCommBackend
from pccl.comms.hooks.registry import OpName
from pccl.comms.options import Hints, OperationOptions, TimeoutLike
from pccl.comms.reduce_op import ReduceOp, as_reduce_op
from pccl.comms.work import TorchWork

Options = Optional[OperationOptions]


class Operations:
    """Of `TorchComm`, which issues them by `_run`."""

    _rank: int
    _size: int
    _backend: TorchCommBackend
    _run: Callable[..., TorchWork]

    # -- Messages --

    def send(
        self, tensor: Any, dst: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """Sends to rank `dst`; messages between two ranks arrive in order.  Its end means that `dst` has it.

        RuntimeError: `dst` is this rank, and the back-end is none that a program has written.
        """

        def checked() -> None:
            check.rank("dst", dst, self._size)
            if dst == self._rank and self._backend.built_in:
                raise RuntimeError(f"Cannot send to self: dst is this rank, {dst}; use a batch")
            check.tensor("tensor", tensor)

        return self._run(OpName.send, {"tensor": tensor, "peer": dst}, (tensor, dst), async_op, hints, timeout, options, checked)

    def recv(
        self, tensor: Any, src: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """Receives from rank `src` into `tensor`, as many elements as were sent."""

        def checked() -> None:
            check.rank("src", src, self._size)
            if src == self._rank and self._backend.built_in:
                raise RuntimeError(f"Cannot receive from self: src is this rank, {src}; use a batch")
            check.tensor("tensor", tensor)

        return self._run(OpName.recv, {"tensor": tensor, "peer": src}, (tensor, src), async_op, hints, timeout, options, checked)

    def _message(self, name: str, tensor: Any, peer: int, tag: int, async_op: bool, seconds: float) -> TorchWork:
        """A message with a tag, which only the native back-end has; other tags are other messages' order."""

        def checked() -> None:
            check.rank("peer", peer, self._size)
            check.tensor("tensor", tensor)

        more = {"tag": tag} if tag else None
        return self._run(OpName[name], {"tensor": tensor, "peer": peer}, (tensor, peer), async_op, None, seconds, None, checked, more)

    # -- Collectives --

    def broadcast(
        self, tensor: Any, root: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """The root's `tensor` is everybody's."""

        def checked() -> None:
            check.rank("root", root, self._size)
            check.tensor("tensor", tensor)

        return self._run(OpName.broadcast, {"tensor": tensor, "root": root}, (tensor, root), async_op, hints, timeout, options, checked)

    def all_reduce(
        self, tensor: Any, op: ReduceOp, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """`tensor` is reduced over all ranks, in place; after an error it is as it was."""
        op = as_reduce_op(op)
        return self._run(
            OpName.all_reduce, {"tensor": tensor, "op": op}, (tensor, op), async_op, hints, timeout, options,
            lambda: check.reduced("tensor", tensor, op),
        )

    def reduce(
        self, tensor: Any, root: int, op: ReduceOp, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """`tensor` is reduced over all ranks at the root, in place; the others' is untouched."""
        op = as_reduce_op(op)

        def checked() -> None:
            check.rank("root", root, self._size)
            check.reduced("tensor", tensor, op)

        return self._run(
            OpName.reduce, {"tensor": tensor, "root": root, "op": op}, (tensor, root, op), async_op, hints, timeout, options, checked
        )

    def all_gather(
        self, tensor_list: Sequence[Any], tensor: Any, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """`tensor_list[r]` is rank r's `tensor`; all of one size; they may be views of one buffer."""
        return self._run(
            OpName.all_gather, {"input": tensor, "output": tensor_list}, (tensor_list, tensor), async_op, hints, timeout, options,
            lambda: check.listed("tensor_list", tensor_list, tensor, self._size, True),
        )

    def all_gather_v(
        self, tensor_list: Sequence[Any], tensor: Any, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """As `all_gather`; `tensor_list[r]` has the size of rank r's `tensor`."""

        def checked() -> None:
            check.listed("tensor_list", tensor_list, tensor, self._size, False)
            check.alike("tensor_list", self._rank, tensor_list[self._rank], tensor)

        return self._run(
            OpName.all_gather_v, {"input": tensor, "output": tensor_list}, (tensor_list, tensor), async_op, hints, timeout, options, checked
        )

    def all_gather_single(
        self, output: Any, input: Any, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """`output` has room for `input` of each rank, by rank."""
        return self._run(
            OpName.all_gather_single, {"input": input, "output": output}, (output, input), async_op, hints, timeout, options,
            lambda: check.times("output", output, "input", input, self._size),
        )

    def reduce_scatter(
        self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """All ranks' `input_list[r]` are reduced into rank r's `output`; all of one size."""
        op = as_reduce_op(op)

        def checked() -> None:
            check.reduced("output", output, op)
            check.listed("input_list", input_list, output, self._size, True)

        return self._run(
            OpName.reduce_scatter, {"input": input_list, "output": output, "op": op}, (output, input_list, op), async_op, hints, timeout,
            options, checked,
        )

    def reduce_scatter_v(
        self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """As `reduce_scatter`; `input_list[r]` has the size of rank r's `output`."""
        op = as_reduce_op(op)

        def checked() -> None:
            check.reduced("output", output, op)
            check.listed("input_list", input_list, output, self._size, False)
            check.alike("input_list", self._rank, input_list[self._rank], output)

        return self._run(
            OpName.reduce_scatter_v, {"input": input_list, "output": output, "op": op}, (output, input_list, op), async_op, hints, timeout,
            options, checked,
        )

    def reduce_scatter_single(
        self, output: Any, input: Any, op: ReduceOp, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """`input` has a part as large as `output` for each rank, by rank."""
        op = as_reduce_op(op)

        def checked() -> None:
            check.reduced("output", output, op)
            check.times("input", input, "output", output, self._size)

        return self._run(
            OpName.reduce_scatter_single, {"input": input, "output": output, "op": op}, (output, input, op), async_op, hints, timeout,
            options, checked,
        )

    def all_to_all_single(
        self, output: Any, input: Any, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """Part r of `input` goes to rank r, and `output` gets as much of each, by rank."""

        def checked() -> None:
            check.alike("output", None, output, input)
            check.divisible("input", input, self._size)

        return self._run(
            OpName.all_to_all_single, {"input": input, "output": output}, (output, input), async_op, hints, timeout, options, checked
        )

    def all_to_all_v_single(
        self, output: Any, input: Any, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], async_op: bool = False,
        hints: Optional[Hints] = None, timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """`input_split_sizes[r]` rows of dimension 0 go to rank r, and `output_split_sizes[r]` come from it."""

        taken = check.whole_numbers("output_split_sizes", output_split_sizes)
        given = check.whole_numbers("input_split_sizes", input_split_sizes)

        def checked() -> None:
            check.same_type("output", output, input)
            check.row_counts("output_split_sizes", taken, "output", output, self._size)
            check.row_counts("input_split_sizes", given, "input", input, self._size)

        fields = {"input": input, "output": output, "input_split_sizes": given, "output_split_sizes": taken}
        arguments = (output, input, taken, given)
        return self._run(OpName.all_to_all_v_single, fields, arguments, async_op, hints, timeout, options, checked)

    def all_to_all(
        self, output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """`input_tensor_list[r]` goes to rank r, `output_tensor_list[r]` comes from it; sizes may differ from pair to pair."""

        def checked() -> None:
            check.length("output_tensor_list", output_tensor_list, self._size)
            check.length("input_tensor_list", input_tensor_list, self._size)
            first = input_tensor_list[0]
            check.listed("output_tensor_list", output_tensor_list, first, self._size, False)
            check.listed("input_tensor_list", input_tensor_list, first, self._size, False)
            check.alike("output_tensor_list", self._rank, output_tensor_list[self._rank], input_tensor_list[self._rank])

        return self._run(
            OpName.all_to_all, {"input": input_tensor_list, "output": output_tensor_list}, (output_tensor_list, input_tensor_list),
            async_op, hints, timeout, options, checked,
        )

    def barrier(
        self, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *, options: Options = None
    ) -> TorchWork:
        """Ends when all ranks have called it."""
        return self._run(OpName.barrier, {}, (), async_op, hints, timeout, options, lambda: None)

    def scatter(
        self, output_tensor: Any, input_tensor_list: Sequence[Any], root: int, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """The root's `input_tensor_list[r]` is rank r's `output_tensor`; the list may be empty at the others."""
        input_tensor_list = [] if input_tensor_list is None else input_tensor_list

        def checked() -> None:
            check.rank("root", root, self._size)
            check.tensor("output_tensor", output_tensor)
            if self._rank == root:
                check.listed("input_tensor_list", input_tensor_list, output_tensor, self._size, True)

        fields = {"input": input_tensor_list, "output": output_tensor, "root": root}
        return self._run(
            OpName.scatter, fields, (output_tensor, input_tensor_list, root), async_op, hints, timeout, options, checked
        )

    def gather(
        self, output_tensor_list: Sequence[Any], input_tensor: Any, root: int, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Options = None,
    ) -> TorchWork:
        """The root's `output_tensor_list[r]` is rank r's `input_tensor`; the list is not looked at elsewhere."""
        output_tensor_list = [] if output_tensor_list is None else output_tensor_list

        def checked() -> None:
            check.rank("root", root, self._size)
            check.tensor("input_tensor", input_tensor)
            if self._rank == root:
                check.listed("output_tensor_list", output_tensor_list, input_tensor, self._size, True)

        fields = {"input": input_tensor, "output": output_tensor_list, "root": root}
        return self._run(OpName.gather, fields, (output_tensor_list, input_tensor, root), async_op, hints, timeout, options, checked)

    def gather_single(
        self, output: Any, input: Any, root: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Options = None,
    ) -> TorchWork:
        """The root's `output` gets `input` of each rank, by rank; it is not looked at elsewhere."""

        def checked() -> None:
            check.rank("root", root, self._size)
            check.tensor("input", input)
            if self._rank == root:
                check.times("output", output, "input", input, self._size)

        fields = {"input": input, "output": output, "root": root}
        return self._run(OpName.gather_single, fields, (output, input, root), async_op, hints, timeout, options, checked)
