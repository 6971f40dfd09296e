#!/usr/bin/env bash
# clang.sh [--newest] - prints the clang to use: the system's own, or the newest that is installed.
# SPDX-License-Identifier: MIT
version() { # of a clang
    "$1" -dumpversion | sed 's/[.].*//'
}
names=$(compgen -c | grep -xE 'clang(-[0-9]+)?' | sort -u)
best=""
for name in $names; do # "clang" comes first, then those with a number
    if [ -z "$best" ]; then
        best=$name
    elif [ "${1:-}" = --newest ] && [ "$(version "$name")" -gt "$(version "$best")" ]; then
        best=$name
    fi
done
if [ -z "$best" ]; then
    echo "no clang found; scripts/setup.sh check installs one" >&2
    exit 1
fi
echo "$best"
