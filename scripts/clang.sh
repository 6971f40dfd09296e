#!/usr/bin/env bash
# Prints the clang to use: 14 if it is there, else any.
# SPDX-License-Identifier: MIT
for name in clang-14 clang clang-15 clang-16 clang-17 clang-18 clang-19; do
    if command -v "$name" >/dev/null; then
        echo "$name"
        exit 0
    fi
done
echo "no clang found" >&2
exit 1
