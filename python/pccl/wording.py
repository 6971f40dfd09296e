"""Texts of the C library in the words of Python: calls, parameters, options and enumerators have the names that a program uses here."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools
import re

from pccl import types

#: The library's calls that its texts name, and what a program calls instead; methods are those of `World`.
CALLS = {
    "pcclInit": "World()", "pcclCreateCommunicator": "World()", "pcclCreateCommunicatorEx": "World()", "pcclConnect": "connect()",
    "pcclConnectAsync": "connect_async()", "pcclLeave": "leave()", "pcclRevoke": "revoke()", "pcclDestroyCommunicator": "destroy()",
    "pcclUpdateTopology": "update()", "pcclOptimizeTopology": "optimize()", "pcclArePeersPending": "peers_pending()",
    "pcclSynchronizeSharedState": "sync_shared_state()", "pcclGetAttribute": "attribute()", "pcclGetSelf": "me", "pcclGetMembers": "members()",
    "pcclGetWaits": "waits()", "pcclSplitCommunicator": "split()", "pcclDuplicateCommunicator": "duplicate()",
    "pcclCreateFromList": "create_from_list()", "pcclGroupStart": "group()", "pcclGroupEnd": "group()", "pcclCreateWindow": "Window()",
    "pcclDestroyWindow": "destroy()", "pcclAllReduce": "all_reduce()", "pcclAllReduceAsync": "all_reduce_async()",
    "pcclAwaitAsync": "wait()", "pcclAwaitAsyncReduce": "wait()", "pcclCancelAsync": "cancel()", "pcclCreateCompletionQueue": "when_done()",
    "pcclRedOpCreatePreMulSum": "premul_sum()", "pcclParseAddress": "World()", "pcclRunMaster": "run()", "pcclInterruptMaster": "interrupt()",
}
#: The library's options, and what sets them.
OPTIONS = {
    "PCCL_OPTION_OPERATION_DEADLINE_MS": "World.set_operation_deadline", "PCCL_OPTION_VOTE_DEADLINE_MS": "World.set_vote_deadline",
    "PCCL_OPTION_CONNECT_TIMEOUT_MS": "World.set_connect_timeout", "PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS": "World.set_master_loss_timeout",
    "PCCL_OPTION_STALL_TIMEOUT_MS": "stall",
}
_CONSTANTS = {"PCCL_NO_COLOR": "NO_COLOR", "PCCL_ANY_RANK": "ANY_RANK"}

#: Enumerations by what C's enumerators begin with, behind "pccl".
_ENUMERATIONS = {
    "": (types.DataType, types.ReduceOp, types.Result), "Distribution": (types.DistributionHint,), "Quant": (types.QuantizationAlgorithm,),
    "Device": (types.DeviceType,), "Window": (types.WindowRights,), "Cause": (types.Cause,), "Class": (types.ErrorClass,),
}

_NAME = re.compile(r"\b(?:pccl[A-Z]\w*|PCCL_[A-Z_]+)")

#: Parameters, in the form that C's texts have them.
_PARAMETERS = [
    (re.compile(r"\bshared_state->infos\["), "tensor_infos["),
    (re.compile(r"\bshared_state->"), "shared_state."),
    (re.compile(r"\b(descriptors\[\d+\]\.)descriptor\."), r"\1"),
    (re.compile(r"\bdescriptor->"), ""),
    (re.compile(r"\bsrc_descriptor\."), "operand_descriptor."),
    (re.compile(r"\bsendbuff?\b"), "send"),
    (re.compile(r"\brecvbuff?\b"), "receive"),
    (re.compile(r"\bpeer (?=is \d+: (?:expected a rank|that is this peer))"), "rank "),
]


@functools.lru_cache(maxsize=None)
def _enumerators() -> dict[str, str]:
    """Python's enumerators by C's, whose letters are the same but for their case."""
    return {
        f"pccl{prefix}{name.replace('_', '')}".casefold(): f"{kind.__name__}.{name}"
        for prefix, kinds in _ENUMERATIONS.items() for kind in kinds for name in kind.__members__
    }


def name_in_python(name: str) -> str:
    """Python's name for one of C's; the same one if there is no other."""
    for prefix, kind in (("PCCL_ATTRIBUTE_", "Attribute"), ("PCCL_SHARED_STATE_SYNC_STRATEGY_", "SharedStateSyncStrategy")):
        if name.startswith(prefix):
            return f"{kind}.{name.removeprefix(prefix)}"
    known = CALLS.get(name) or OPTIONS.get(name) or _CONSTANTS.get(name)
    return known or _enumerators().get(name.casefold(), name)


def in_python(text: str) -> str:
    """A text of the library with Python's names."""
    for pattern, replacement in _PARAMETERS:
        text = pattern.sub(replacement, text)
    return _NAME.sub(lambda found: name_in_python(found[0]), text)


def without_phase(text: str, phase: str, function: str) -> str:
    """The text of an error without the phase that it begins with, where the function's name says the same."""
    said = re.sub(r"\W|_", "", phase).casefold() in re.sub(r"\W|_", "", function).casefold()
    return text.removeprefix(f"{phase}: ") if said else text
