#!/usr/bin/env bash
# check_binary.sh BUILD - what the linker and other compilers can tell; each rule is one test.
#
#   exports   libpccl.so exports the names in scripts/exported_symbols.txt, no more, no fewer
#   archive   libpccl.a defines no other global name
#   own_names a program with its own vote_open and conn_send links against libpccl.a
#   globals   the library has no writable data but what scripts/globals.txt names
#   purity    the files of scripts/pure_files.txt need only scripts/pure_externals.txt and hold no writable data
#   headers   pccl.h and pccl_topology.h compile alone as C99 and as C++20, pedantic, with gcc and clang
# The purity rule compiles for itself, so that sanitizers and position independence do not blur it.
# SPDX-License-Identifier: MIT
set -u
build=$(cd "${1:?build directory}" && pwd)
. "$(dirname "$0")/testing.sh"
cd "${ROOT:-$(dirname "$0")/..}" || exit 2

names_of() { # file: its list without comments, sorted
    sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1" | LC_ALL=C sort -u
}

exports() {
    nm -D --defined-only "$build/libpccl.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u \
        >"$work/exports"
    names_of scripts/exported_symbols.txt | diff - "$work/exports"
}

archive() {
    nm -g --defined-only "$build/libpccl.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u >"$work/globals"
    names_of scripts/exported_symbols.txt | diff - "$work/globals"
}

own_names() {
    gcc -std=gnu11 -Wall -Iinclude tests/package/own_names.c "$build/libpccl.a" -lm -pthread -o "$work/own_names" &&
        "$work/own_names"
}

globals() {
    # A table of pointers in a position-independent library is relocated, then read-only: .data.rel.ro is no writable data.
    objdump -t "$build/libpccl.a" | awk -F '\t' '{ n = split($1, left, " "); m = split($2, right, " ") }
        left[n - 1] == "O" && left[n] ~ /^\.t?(data|bss)/ && left[n] !~ /^\.data\.rel\.ro/ {
            sub(/\.[0-9]+$/, "", right[m]); print right[m] }' | LC_ALL=C sort -u >"$work/data"
    names_of scripts/globals.txt | LC_ALL=C comm -13 - "$work/data" | grep . && return 1
    return 0
}

pure_files() {
    local pattern exclude
    exclude=$(names_of scripts/pure_files.txt | sed -n 's/^!//p')
    for pattern in $(names_of scripts/pure_files.txt | grep -v '^!'); do
        compgen -G "$pattern"
    done | LC_ALL=C sort -u | while read -r file; do
        for pattern in $exclude; do
            # shellcheck disable=SC2053
            [[ $file == $pattern ]] && continue 2
        done
        echo "$file"
    done
}

purity() {
    local status=0
    pure_files >"$work/pure" || return 1
    [ -s "$work/pure" ] || { echo "no pure files found"; return 1; }
    # No-PIE: a constant table of pointers is then read-only data, not data to be relocated.
    (cd "$work" && sed "s|^|$OLDPWD/|" pure | xargs -d '\n' -P "$(nproc)" -n 4 gcc -std=gnu11 -O2 -ffp-contract=off -fno-pie -fno-pic \
        -fno-stack-protector -U_FORTIFY_SOURCE -I"$OLDPWD/src" -I"$OLDPWD/include" -I"$OLDPWD" -c) || return 1
    ld -r -o "$work/pure.all" "$work"/*.o || return 1
    nm -u "$work/pure.all" | awk '{ print $2 }' | LC_ALL=C sort -u >"$work/needs"
    names_of scripts/pure_externals.txt | grep -v '^data ' >"$work/may_need"
    if LC_ALL=C comm -23 "$work/needs" "$work/may_need" | grep .; then
        echo "^ needed by pure files, not in scripts/pure_externals.txt:"
        nm -A -u "$work"/*.o | grep -wFf <(LC_ALL=C comm -23 "$work/needs" "$work/may_need") | sed "s|$work/||"
        status=1
    fi
    names_of scripts/pure_externals.txt | sed -n 's/^data //p' >"$work/may_write"
    nm "$work/pure.all" | awk '$2 ~ /^[dDbBCsSgG]$/ { print $3 }' | LC_ALL=C sort -u >"$work/writes"
    if LC_ALL=C comm -23 "$work/writes" "$work/may_write" | grep .; then
        echo "^ writable data in pure files"
        status=1
    fi
    return $status
}

headers() {
    local compiler
    for compiler in gcc "$(scripts/clang.sh)"; do
        printf '#include "%s"\n' pccl_topology.h pccl.h >"$work/alone.c"
        echo 'int f(pcclComm_t *c, pcclSharedState_t *s); int f(pcclComm_t *c, pcclSharedState_t *s) {
            return pcclSynchronizeSharedState(c, s, 0) + pcclSynchronizeSharedState(c, s,
                PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, 0); }' >>"$work/alone.c"
        cp "$work/alone.c" "$work/alone.cc"
        "$compiler" -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/alone.c" || return 1
        "$compiler" -x c++ -std=c++20 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/alone.cc" || return 1
    done
}

# shellcheck disable=SC2086
check_each ${RULES:-exports archive own_names globals purity headers}
sum_up
