#!/usr/bin/env bash
# diagrams.sh BUILD [--check] - puts the state diagrams printed by the code's own tables into docs/internals/PROTOCOL.md, or checks
# that those there are up to date (one test).
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
document=docs/internals/PROTOCOL.md
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
{
    sed '/^<!-- diagrams: begin -->$/q' "$document"
    "$1/tests/unit/protocol_diagrams_main"
    sed -n '/^<!-- diagrams: end -->$/,$p' "$document"
} >"$fresh"
if [ "${2:-}" != --check ]; then
    cat "$fresh" >"$document"
elif cmp -s "$fresh" "$document"; then
    echo "1 passed, 0 failed"
else
    echo "$document: the diagrams are not those of the code; run scripts/diagrams.sh BUILD"
    echo "0 passed, 1 failed"
    exit 1
fi
