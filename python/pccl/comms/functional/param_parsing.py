"""The parameters of methods and of their operators: what each is, and how a call of the one becomes a call of the other."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Mapping, Sequence

from pccl.comms.options import as_seconds
from pccl.comms.reduce_op import RedOpType, ReduceOp

#: Parameters of each method and what they are: T the tensor that is written, X one that is read too, L a list that is written,
#: t and l what is only read, i a number, n a list of numbers, o an operator.
METHODS: dict[str, dict[str, str]] = {
    "send": {"tensor": "t", "dst": "i"},
    "recv": {"tensor": "T", "src": "i"},
    "broadcast": {"tensor": "X", "root": "i"},
    "all_reduce": {"tensor": "X", "op": "o"},
    "reduce": {"tensor": "X", "root": "i", "op": "o"},
    "all_gather": {"tensor_list": "L", "tensor": "t"},
    "all_gather_v": {"tensor_list": "L", "tensor": "t"},
    "all_gather_single": {"output": "T", "input": "t"},
    "reduce_scatter": {"output": "T", "input_list": "l", "op": "o"},
    "reduce_scatter_v": {"output": "T", "input_list": "l", "op": "o"},
    "reduce_scatter_single": {"output": "T", "input": "t", "op": "o"},
    "all_to_all_single": {"output": "T", "input": "t"},
    "all_to_all_v_single": {"output": "T", "input": "t", "output_split_sizes": "n", "input_split_sizes": "n"},
    "all_to_all": {"output_tensor_list": "L", "input_tensor_list": "l"},
    "barrier": {},
    "scatter": {"output_tensor": "T", "input_tensor_list": "l", "root": "i"},
    "gather": {"output_tensor_list": "L", "input_tensor": "t", "root": "i"},
    "gather_single": {"output": "T", "input": "t", "root": "i"},
}

_TYPES = {"T": "Tensor", "X": "Tensor", "t": "Tensor", "L": "Tensor[]", "l": "Tensor[]", "i": "int", "n": "int[]"}
_WRITTEN = {"T": "Tensor(a!)", "X": "Tensor(a!)", "L": "Tensor(a!)[]"}
_RESULTS = {"T": "Tensor", "X": "Tensor", "L": "Tensor[]"}

#: Parameters that each method has behind its own.
COMMON = ("async_op", "hints", "timeout")


def written(method: str) -> str:
    """The parameter that a method writes; empty: none."""
    return next((name for name, kind in METHODS[method].items() if kind in _WRITTEN), "")


def schema(method: str, in_place: bool) -> str:
    """The schema of a method's operator, without its name."""
    types = {**_TYPES, **_WRITTEN} if in_place else _TYPES
    parameters = ["int op, float factor" if kind == "o" else f"{types[kind]} {name}" for name, kind in METHODS[method].items()]
    parameters += ["str comm", *([] if in_place else ["bool async_op"]), "float timeout", "str[] hints"]
    target = written(method)
    result = "()" if in_place else _RESULTS[METHODS[method][target]] if target else "Tensor"
    return f"({', '.join(parameters)}) -> {result}"


def parsed(method: str, values: Sequence[Any]) -> tuple[dict[str, Any], Sequence[Any]]:
    """Arguments of the method by name, and what follows them."""
    rest, taken = list(values), {}
    for name, kind in METHODS[method].items():
        taken[name] = rest.pop(0)
        if kind == "o":
            factor = rest.pop(0)
            taken[name] = ReduceOp.PREMUL_SUM(factor) if taken[name] == RedOpType.PREMUL_SUM else ReduceOp(RedOpType(taken[name]))
    return taken, rest


def given(method: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a call of the method, by name.  TypeError: one that the method has not, is given twice, or lacks."""
    found: dict[str, Any] = {}
    names = (*METHODS[method], *COMMON)
    if len(arguments) > len(names):
        raise TypeError(f"{method} takes {len(names)} arguments, and {len(arguments)} were given")
    for name, value in zip(names, arguments):
        found[name] = value
    for name, value in named.items():
        if name in found or name not in (*names, "options"):
            raise TypeError(f"{method}: {name} is {'given twice' if name in found else 'none of its arguments'}; see its signature")
        found[name] = value
    for name in METHODS[method]:
        if name not in found:
            raise TypeError(f"{method} lacks its argument {name}; pass it")
    return found


def operator_values(method: str, found: Mapping[str, Any]) -> list[Any]:
    """The operator's arguments up to the communicator, of what `given` returned."""
    values: list[Any] = []
    for name, kind in METHODS[method].items():
        value = found[name]
        if kind == "o":
            values += operator_of(value)
        elif kind in "Lln":
            values.append([] if value is None else list(value))
        else:
            values.append(value)
    return values


def operator_of(op: Any) -> tuple[int, float]:
    """A reduce operator as operators take it: its number, and its factor, which is 1 where it has none."""
    factor = getattr(op, "factor", None)
    return int(getattr(op, "type", op)), 1.0 if factor is None else float(factor)


def limits(found: Mapping[str, Any]) -> tuple[float, list[str]]:
    """Timeout and hints of a call as operators take them: keywords win over `options`."""
    options = found.get("options")
    timeout, hints = found.get("timeout"), found.get("hints")
    if options is not None:
        timeout, hints = options.timeout if timeout is None else timeout, options.hints if hints is None else hints
    flat: list[str] = []
    for key, value in (hints or {}).items():
        flat += [key, value]
    return as_seconds(timeout) or 0.0, flat
