"""Every public name says what it is: the reference is made of that (make docs)."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import types
from typing import NamedTuple

import pccl
from support.reference import PAGES, Name, modules, public_names

FACES = {
    "pccl", "pccl.engine", "pccl.engine.bootstrap", "pccl.distributed", "pccl.comms", "pccl.comms.objcol", "pccl.comms.hooks",
    "pccl.comms.device_mesh", "pccl.comms.functional", "pccl.comms.rdma_transport", "pccl.comms.store_manager",
    "pccl.multiworld",
}


def says_too_little(name: Name) -> bool:
    """Nothing, or what Python says of a class by itself; of a constant its page says what it is."""
    if isinstance(name.thing, (str, int)):
        return False
    text = name.said()
    by_itself = isinstance(name.thing, type) and (text.startswith(f"{name.thing.__name__}(") or text in (name.thing.__base__.__doc__ or ""))
    return by_itself or len(text.split()) < 3


def test_every_face_has_a_page() -> None:
    assert FACES <= set(modules())
    assert ".. py:module:: pccl.comms.distwrap\n" in (PAGES / "comms.rst").read_text()  # made of torch's own signatures, which Sphinx does without


def test_every_public_name_says_what_it_is() -> None:
    found = list(public_names())
    assert {"pccl.Communicator.connect", "pccl.engine.World.all_reduce", "pccl.comms.TorchComm.all_to_all_v_single"} <= {name.name for name in found}
    assert [name.name for name in found if says_too_little(name)] == []


def test_every_public_value_is_on_its_page() -> None:
    """Classes and functions are there by themselves; of a value the page has to say what it is."""
    pages = "".join(page.read_text() for page in PAGES.glob("*.rst"))
    values = [name.name for name in public_names() if not callable(name.thing) and not isinstance(name.thing, (property, classmethod, types.ModuleType))]
    assert "pccl.engine.ANY_RANK" in values
    assert [name for name in values if f".. autodata:: {name}\n" not in pages] == []


def test_one_that_says_nothing_is_found() -> None:
    class Silent(NamedTuple):
        number: int

    class Heir(pccl.PCCLError):
        pass

    assert all(says_too_little(Name("pccl.planted", thing)) for thing in (Silent, Heir, lambda: None, property(lambda self: None)))
    assert not says_too_little(Name("pccl.run", pccl.run))
