#!/usr/bin/env bash
# test_seeds.sh BUILD - the C++ listings of tests/seeds/getting_started.md: each is compiled unchanged, each program is run
# to its end in a network of its own, where the document's fixed address and port are free.
#
# Names that a listing uses and nothing declares come from tests/seeds/seed_names.h.  Without the right to make a network
# namespace the runs are skipped, and said to be.  The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:?build directory}" && pwd)
cxx=${CXX:-g++}
cc=${CC:-gcc}
seeds=$PWD/tests/seeds
. scripts/testing.sh
programs=${PCCL_SEED_PROGRAMS:-$work} # compiled outside of the namespace

# ---- inside the namespace: run one scenario ----
listens() { # port
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
until_listening() {
    for _ in $(seq 200); do
        listens 48148 && return 0
        sleep 0.05
    done
    echo "nobody listens at port 48148"
    return 1
}
run_master_program() { # the document's own master ends by SIGTERM
    "$programs/program_1" >"$work/program_1.out" 2>&1 &
    master=$!
    until_listening && stop_master || { cat "$work/program_1.out"; return 1; }
    grep -q "Interrupting master node" "$work/program_1.out" && grep -q "Master node terminated" "$work/program_1.out"
}
run_connect_program() { # the master is at 10.1.2.92
    start_master --log-level debug || return 1
    timeout 30 "$programs/program_2" >"$work/program_2.out" 2>&1
    local status=$?
    cat "$work/program_2.out"
    stop_master && [ $status = 0 ] && grep -q "Peer successfully connected!" "$work/program_2.out"
}
hello_world_twice() {
    local first second status=0
    timeout 60 "$programs/program_7" >"$work/hello_1.out" 2>&1 &
    first=$!
    timeout 60 "$programs/program_7" >"$work/hello_2.out" 2>&1 &
    second=$!
    wait $first || status=1
    wait $second || status=1
    cat "$work/hello_1.out" "$work/hello_2.out"
    for out in "$work/hello_1.out" "$work/hello_2.out"; do
        grep -q "Reached revision 5 => done" "$out" && grep -q "Exiting" "$out" || status=1
    done
    # The peers' counters differ, so compare results only: both print the same five.
    diff <(grep -o 'result = \[[^]]*\]' "$work/hello_1.out") <(grep -o 'result = \[[^]]*\]' "$work/hello_2.out") ||
        status=1
    return $status
}
run_hello_world() {
    start_master --log-level debug || return 1
    hello_world_twice
    local status=$?
    stop_master && [ $status = 0 ] || { cat "$work/master.log"; return 1; }
}
run_hello_world_with_the_documents_master() {
    "$programs/program_1" >"$work/program_1.out" 2>&1 &
    master=$!
    until_listening || return 1
    hello_world_twice
    local status=$?
    stop_master && [ $status = 0 ]
}
if [ -n "${PCCL_SEED_RUN:-}" ]; then
    ip link set lo up && ip addr add 10.1.2.92/32 dev lo || exit 1
    "$PCCL_SEED_RUN"
    exit
fi

# ---- outside ----
own_network=""
for how in "unshare -n" "unshare -r -n"; do
    if $how sh -c 'ip link set lo up' >/dev/null 2>&1; then
        own_network=$how
        break
    fi
done
run() { # scenario
    if [ -z "$own_network" ]; then
        echo "SKIPPED $1: it needs a fixed port and address, and network namespaces are not permitted here"
        return
    fi
    check "$1" env PCCL_SEED_RUN="$1" PCCL_SEED_PROGRAMS="$work" $own_network "$0" "$build"
}

check header_is_c99 "$cc" -std=c99 -pedantic-errors -Wall -Wextra -Werror -Iinclude -c "$seeds/header_c99.c" -o "$work/c99.o"
check header_is_cxx20 "$cxx" -std=c++20 -pedantic-errors -Wall -Wextra -Werror -Iinclude -c "$seeds/header_cxx20.cpp" \
    -o "$work/cxx20.o"

names=$(python3 scripts/extract_seeds.py "$seeds/getting_started.md" "$work")
check the_document_has_its_listings test "$(echo $names)" = \
    "program_1.cpp program_2.cpp fragment_3.cpp fragment_4.cpp fragment_5.cpp fragment_6.cpp program_7.cpp"
for name in $names; do
    number=${name//[^0-9]/}
    check "compiles_$name" "$cxx" -std=c++20 -pedantic-errors -Wall -Werror -DSEED_LISTING="$number" -include "$seeds/seed_names.h" \
        -Iinclude -c "$work/$name" -o "$work/${name%.cpp}.o"
    case $name in
    program_*)
        check "links_$name" "$cxx" "$work/${name%.cpp}.o" -L"$build" -lpccl -Wl,-rpath,"$build" -pthread \
            -o "$work/${name%.cpp}"
        ;;
    esac
done
run run_master_program
run run_connect_program
run run_hello_world
run run_hello_world_with_the_documents_master
sum_up
