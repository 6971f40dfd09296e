"""Compares the public surface of torch's ProcessGroup with that of `pccl.distributed.Group`; prints what differs and is not listed.

    python tests/python/distributed/surface.py

A name counts as ours where `Group`, or a class of ours below it, defines it.  Of a name that issues something, each overload in torch's
docstring has to be taken, by position and by name, with and without its defaults.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import re
import sys
from typing import Any, Iterator, NamedTuple

import torch
import torch.distributed as dist

from pccl.distributed import Group, forms
from pccl.distributed.calls import Place
from pccl.distributed.group import CALLS

in_cpp: Any = torch._C._distributed_c10d
_BACKENDS = "of the back-ends in C++, of which a group of ours has none"
_AS_IT_IS = "torch's own does what it should"

#: Names that `Group` inherits, and why that is right, for each release that has been compared.
_LISTED: dict[str, str] = {
    **dict.fromkeys(("BackendType", "CUSTOM", "GLOO", "MPI", "NCCL", "UCC", "UNDEFINED", "XCCL"), "an enumeration"),
    **dict.fromkeys(("_backend_id", "_register_backend", "_set_default_backend", "_register_on_completion_hook"), _BACKENDS),
    **dict.fromkeys(("_enable_collectives_timing", "_has_hooks", "bound_device_id"), _BACKENDS),
    **dict.fromkeys(("_id", "boxed", "unbox", "_pybind11_conduit_v1_"), _AS_IT_IS),
    **dict.fromkeys(("name", "rank", "size", "_get_backend_name", "group_name", "group_desc"), "torch's own asks our getRank and the like"),
    **dict.fromkeys(("_set_group_name", "_set_group_desc"), "torch's own calls our setGroupName and setGroupDesc"),
}
LISTED = {"2.13": _LISTED, "2.15": _LISTED}


class Parameter(NamedTuple):
    name: str
    kind: str
    has_default: bool


def release() -> str:
    return ".".join(torch.__version__.split(".")[:2])


def differences() -> list[str]:
    """What is not listed."""
    found = []
    listed = LISTED.get(release(), {})
    own = {name for cls in Group.__mro__ if cls.__module__.startswith("pccl") for name in vars(cls)}
    for name in dir(in_cpp.ProcessGroup):
        if name.startswith("__") or name in listed:
            continue
        if name not in own:
            found.append(f"{name}: Group has none of its own")
    issuing = {name: build for build, names in CALLS.items() for name in names}
    for name, build in issuing.items():
        for parameters in overloads(getattr(in_cpp.ProcessGroup, name, None), name):
            for how, positional, named in ways(parameters):
                try:
                    build(Place(0, 1), *forms.arguments_of(build, positional, named))
                except Exception as error:  # noqa: B902 - whatever it is, the overload is not taken
                    found.append(f"{name}({', '.join(p.name for p in parameters)}) {how}: {type(error).__name__}: {error}")
    return found


def overloads(function: Any, name: str) -> Iterator[list[Parameter]]:
    """Their parameters behind `self`, by the docstring that pybind11 makes."""
    for line in (getattr(function, "__doc__", None) or "").splitlines():
        match = re.match(rf"^(?:\d+\. )?{name}\((self: .*)\) -> ", line)
        if match:
            yield [parameter for parameter in map(_parameter, _split(match[1])) if parameter.name != "self"]


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[(<") - (letter in "])>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parameter(text: str) -> Parameter:
    name, _, rest = text.strip().partition(":")
    kind, equals, _ = rest.partition("=")
    return Parameter(name, kind.strip(), bool(equals))


def ways(parameters: list[Parameter]) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """How a caller may pass them."""
    needed = [parameter for parameter in parameters if not parameter.has_default]
    yield "by position", [value_of(parameter.kind) for parameter in parameters], {}
    yield "by position, without defaults", [value_of(parameter.kind) for parameter in needed], {}
    if all(not re.fullmatch(r"arg\d+", parameter.name) for parameter in parameters):
        yield "by name", [], {parameter.name: value_of(parameter.kind) for parameter in parameters}
        yield "by name, without defaults", [], {parameter.name: value_of(parameter.kind) for parameter in needed}


def value_of(kind: str) -> Any:
    """Something of a type, as a docstring tells it, for a group of one."""
    kind = kind.replace("torch._C._distributed_c10d.", "").replace("collections.abc.", "").replace("typing.", "")
    if kind.endswith("Options"):
        return getattr(in_cpp, kind)()
    return {
        "torch.Tensor": torch.ones(2), "Sequence[torch.Tensor]": [torch.ones(2)], "Sequence[Sequence[torch.Tensor]]": [[torch.ones(2)]],
        "ReduceOp": dist.ReduceOp.MAX, "datetime.timedelta | None": datetime.timedelta(seconds=9), "SupportsInt | SupportsIndex": 0,
        "Sequence[SupportsInt | SupportsIndex]": [], "datetime.timedelta": datetime.timedelta(seconds=9),
    }[kind]


if __name__ == "__main__":
    unlisted = differences()
    print("\n".join(unlisted))
    print(f"torch {torch.__version__}: {len(unlisted)} differences that are not listed")
    sys.exit(bool(unlisted))
