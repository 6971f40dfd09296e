#!/usr/bin/env bash
# wheels.sh [DIST] - the source distribution and the wheels of the Python package, in DIST (build/dist): manylinux_2_28 for x86_64
# and aarch64, each for every CPython from 3.10 on.
#
# The compiler is that of the package ziglang, whose headers and stubs are of glibc 2.28, so that the machine's own do not
# count; auditwheel says whether what a wheel needs is there, and abi3audit whether every CPython has it.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
dist=${1:-build/dist}
mkdir -p "$dist" build/wheels
dist=$(cd "$dist" && pwd)
tools=$PWD/build/wheels/tools
python=$tools/bin/python

[ -x "$python" ] || python3 -m venv "$tools"
"$python" -m pip install -q --disable-pip-version-check build wheel ziglang auditwheel abi3audit scikit-build-core cffi 2>build/wheels/pip.err || {
    tail -n 5 build/wheels/pip.err
    exit 1
}
export PATH=$tools/bin:$PATH

rm -f "$dist"/libpccl-*
"$python" -m build --sdist --no-isolation -o "$dist" . >build/wheels/sdist.log 2>&1 || { tail -n 40 build/wheels/sdist.log; exit 1; }
sdist=$(echo "$dist"/libpccl-*.tar.gz)

for machine in x86_64 aarch64; do
    rm -rf "build/wheels/$machine"
    mkdir "build/wheels/$machine"
    compiler=$PWD/build/wheels/$machine/cc
    printf '#!/bin/sh\nexec %s -m ziglang cc -target %s-linux-gnu.2.28 "$@"\n' "$python" "$machine" >"$compiler"
    chmod +x "$compiler"
    tar -xzf "$sdist" -C "build/wheels/$machine" --strip-components 1
    # Stripped by the linker: the machine's strip knows its own processor only.
    CC=$compiler LDFLAGS=-s _PYTHON_HOST_PLATFORM=linux-$machine "$python" -m build --wheel --no-isolation -o "build/wheels/$machine/dist" \
        -C install.strip=false -C cmake.define.CMAKE_SYSTEM_NAME=Linux -C cmake.define.CMAKE_SYSTEM_PROCESSOR=$machine \
        "build/wheels/$machine" >"build/wheels/$machine.log" 2>&1 || { tail -n 40 "build/wheels/$machine.log"; exit 1; }
    made=$(echo build/wheels/"$machine"/dist/*.whl)
    "$python" -m auditwheel show "$made" >"build/wheels/$machine.audit" 2>&1
    oldest=$(grep -o 'manylinux_2_[0-9]*' "build/wheels/$machine.audit" | head -n 1)
    if [ -z "$oldest" ] || [ "${oldest##*_}" -gt 28 ]; then
        cat "build/wheels/$machine.audit"
        exit 1
    fi
    "$python" -m abi3audit --strict "$made" >>"build/wheels/$machine.audit" 2>&1 || { cat "build/wheels/$machine.audit"; exit 1; }
    "$python" -m wheel tags --remove --platform-tag "manylinux_2_28_$machine" "$made" >/dev/null
    mv build/wheels/"$machine"/dist/*.whl "$dist"
done
(cd "$dist" && stat -c '%s bytes  %n' libpccl-*)
