#!/usr/bin/env bash
# bench.sh BUILD [NAME...] - runs the benchmarks one after the other, alone: all programs in BUILD/bench and the runs of
# "pccl bench" that docs/internals/MEASUREMENTS.md shows, or the programs named.
# SPDX-License-Identifier: MIT
set -eu
directory=${1:?build directory}/bench
shift
if [ $# = 0 ]; then
    for words in "-n 2 -e 256M --transport tcp" "-n 4 -e 256M --transport tcp" "-n 2 -e 256M --transport shm" \
        "-n 4 -e 256M --transport shm" "-n 4 -b 64M -e 64M --kill-rank 1 --rounds 20 --transport tcp" \
        "-n 4 -b 64M -e 64M --kill-rank 1 --rounds 20 --transport shm"; do
        echo "== pccl bench $words"
        # shellcheck disable=SC2086
        "$directory/../bin/pccl" bench $words
    done
    set -- $(find "$directory" -maxdepth 1 -name 'bench_*' -type f -executable -printf '%f\n' | sort)
fi
for name in "$@"; do
    echo "== $name"
    "$directory/$name"
done
