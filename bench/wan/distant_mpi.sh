#!/bin/sh
# distant_mpi.sh host ADDRESS... -- PROGRAM [WORD...] - on each host of an emulated network; starts mpirun on the first one.
# distant_mpi.sh agent ADDRESS COMMAND... - what mpirun uses in place of ssh.
#
# The hosts share this machine's files, so a host other than the first waits for its command in the folder DISTANT_FOLDER,
# where the agent puts it under the host's address.  MPI programs get LD_PRELOAD from DISTANT_PRELOAD, mpirun does not.
# SPDX-License-Identifier: MIT
set -eu
role=$1
shift
look() { # file: until it is there, or mpirun has ended
    while [ ! -e "$1" ]; do
        [ ! -e "$DISTANT_FOLDER/over" ] || exit 1
        sleep 0.02
    done
}
if [ "$role" = agent ]; then
    host=$1
    shift
    printf '%s\n' "$*" >"$DISTANT_FOLDER/$host.new"
    mv "$DISTANT_FOLDER/$host.new" "$DISTANT_FOLDER/$host"
    look "$DISTANT_FOLDER/$host.done"
    exit 0
fi
hosts=
while [ "$1" != -- ]; do
    hosts=$hosts${hosts:+,}$1
    shift
done
shift
TMPDIR=$DISTANT_FOLDER/tmp.$PCCL_WAN_RANK # whatever else Open MPI takes for one machine
export TMPDIR
mkdir "$TMPDIR"
if [ "$PCCL_WAN_RANK" != 0 ]; then
    look "$DISTANT_FOLDER/$PCCL_WAN_ADDRESS"
    trap 'touch "$DISTANT_FOLDER/$PCCL_WAN_ADDRESS.done"' EXIT
    sh "$DISTANT_FOLDER/$PCCL_WAN_ADDRESS"
    exit 0
fi
net=${PCCL_WAN_FIRST%.*}.0/24 # all hosts are in it; with several networks Open MPI does not know a peer by its address
trap 'touch "$DISTANT_FOLDER/over"' EXIT
mpirun.openmpi --host "$hosts" --map-by node --mca plm_rsh_agent "$0 agent" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include "$net" --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$net" \
    env LD_PRELOAD="$DISTANT_PRELOAD" "$@"
