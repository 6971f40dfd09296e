#!/usr/bin/env bash
# bench.sh BUILD [NAME...] - runs the benchmarks one after the other, alone: all programs in BUILD/bench, or those named.
# SPDX-License-Identifier: MIT
set -eu
directory=${1:?build directory}/bench
shift
if [ $# = 0 ]; then
    set -- $(find "$directory" -maxdepth 1 -name 'bench_*' -type f -executable -printf '%f\n' | sort)
fi
for name in "$@"; do
    echo "== $name"
    "$directory/$name"
done
