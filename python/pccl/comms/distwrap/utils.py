"""The meaning of a back-end's text: names by kind of device."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Optional

from pccl.comms import factory

#: Devices of names that stand alone.
_DEVICES = {"nccl": "cuda", "ncclx": "cuda", "rccl": "cuda", "rcclx": "cuda"}


def backends_by_device(backend: Optional[str]) -> dict[str, str]:
    """Of "gloo", or "cpu:gloo,cuda:nccl"; None: the native one.  ValueError: a name alone that there is not, or a text of another form.
    TypeError: no text."""
    if backend is not None and not isinstance(backend, str):
        raise TypeError(f"backend is {backend!r}, a {type(backend).__name__}; pass a name, or 'device:name'")
    text = (backend or factory.NATIVE).lower()
    if ":" not in text:
        if text not in (*_DEVICES, *factory._built_in, *factory._registered):
            raise ValueError(f"backend is {backend!r}, which is unknown; pass one of {', '.join(factory.built_backends())}, or 'device:name'")
        return {_DEVICES.get(text, "cpu"): text}
    parts = [part.strip().partition(":") for part in text.split(",")]
    if not all(device and colon and name for device, colon, name in parts):
        raise ValueError(f"backend is {backend!r}; write 'device:name' for each device, with commas between")
    if len({device for device, _, _ in parts}) != len(parts):
        raise ValueError(f"backend is {backend!r}, which names a device twice; write each once")
    return {device: name for device, _, name in parts}
