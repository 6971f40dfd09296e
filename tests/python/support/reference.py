"""The public names of the Python package: what its reference has to have, and a docstring says something of.

The modules are those that the pages of the reference name; Sphinx asks here, too, whether it has all of them.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import types
from typing import Any, Iterator, NamedTuple

PAGES = pathlib.Path(__file__).resolve().parents[3] / "docs" / "reference" / "python"


class Name(NamedTuple):
    """A public name, with its modules and classes before it."""

    name: str
    thing: Any

    def names(self) -> set[str]:
        """The names under which the reference may have it: this one, or that of where it is made."""
        home, own = getattr(self.thing, "__module__", None), getattr(self.thing, "__qualname__", None)
        return {self.name, f"{home}.{own}"} if home and own else {self.name}

    def said(self) -> str:
        """What its docstring says."""
        return inspect.cleandoc(getattr(self.thing, "__doc__", None) or "")


def modules() -> list[str]:
    """The modules that have a page."""
    return [name for page in sorted(PAGES.glob("*.rst")) for name in re.findall(r"^\.\. automodule:: (\S+)", page.read_text(), re.M)]


def public_names() -> Iterator[Name]:
    """All of them; what a class has is named once, wherever it can be imported from."""
    listed = {module: dict(_listed(importlib.import_module(module))) for module in modules()}
    classes = {thing for things in listed.values() for thing in things.values() if isinstance(thing, type)}
    named: set[type] = set()
    for module, things in listed.items():
        yield Name(module, importlib.import_module(module))
        for name, thing in things.items():
            yield Name(f"{module}.{name}", thing)
            if isinstance(thing, type) and thing not in named:
                hidden = [base for base in thing.__mro__ if base.__module__.startswith("pccl") and base not in classes]
                members = {member: call for cls in [*reversed(hidden), thing] for member, call in _calls(cls)}
                yield from (Name(f"{module}.{name}.{member}", call) for member, call in members.items())
                named.add(thing)


def _listed(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """What the module lists as its own; where it lists nothing, the classes and functions that it makes."""
    made = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", made):
        if not name.startswith("_") and not isinstance(getattr(module, name), types.ModuleType):
            yield name, getattr(module, name)


def _calls(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that the class itself has."""
    kinds = (types.FunctionType, classmethod, staticmethod, property)
    return ((name, thing) for name, thing in vars(cls).items() if not name.startswith("_") and isinstance(thing, kinds))
