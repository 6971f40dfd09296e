#!/usr/bin/env bash
# test_python.sh [BUILD] [ARGUMENT...] - the Python package as users get it: the wheel is built, installed in environments of
# its own, with torch and numpy and without, and tested there, then by torch's own suite of torch.distributed.  Arguments are
# pytest's: folders, -k WORDS; then nothing else is run.
#
# With TORCH_RELEASE=2.15.0 in the environment that release of torch is installed, and only what needs torch is tested, torch's
# suite also in groups that are torch's own.
#
# The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${1:-build/python}
[ $# = 0 ] || shift
mkdir -p "$build"
build=$(cd "$build" && pwd)
. scripts/testing.sh

requirements=$build/requirements.txt
sed "s/^torch==.*/torch==${TORCH_RELEASE:-$(sed -n 's/^torch==//p' tests/python/requirements.txt)}/" tests/python/requirements.txt >"$requirements"

environment() { # NAME WHAT...: one with these packages, made once
    local python=$build/$1/bin/python
    [ -x "$python" ] || python3 -m venv "$build/$1" || return 1
    "$python" -m pip install -q --disable-pip-version-check "${@:2}" 2>"$build/pip.err" || {
        tail -n 5 "$build/pip.err"
        return 1
    }
}
clean_clone() { # to $build/clone: of the sources as they are here, what git has; all of them where there is no git
    rm -rf "$build/clone"
    mkdir "$build/clone"
    if git ls-files -z >"$work/files" 2>/dev/null && [ -s "$work/files" ]; then
        xargs -0 cp --parents -t "$build/clone" <"$work/files"
    else
        cp -r CMakeLists.txt LICENSE README.md pyproject.toml apps cmake include python scripts src "$build/clone"
    fi
}
wheel() { # of a clean clone; its name goes to $built
    rm -rf "$build/dist"
    clean_clone && "$build/full/bin/python" -m pip wheel -q --no-deps -w "$build/dist" "$build/clone" 2>"$build/wheel.err" || {
        tail -n 40 "$build/wheel.err"
        return 1
    }
    built=$(echo "$build"/dist/libpccl-*.whl)
    [ -f "$built" ]
}
the_wheel_is_one_abi3_extension_and_small() { # a second library, or one for this interpreter alone
    local listed
    listed=$(python3 -m zipfile -l "$built")
    case $built in *-cp310-abi3-*) ;; *) return 1 ;; esac
    [ "$(echo "$listed" | grep -c '\.so')" = 1 ] || return 1
    echo "the wheel has $(stat -c %s "$built") bytes" >>"$work/figures"
    [ "$(stat -c %s "$built")" -lt 4000000 ]
}
it_works_without_torch_and_numpy() {
    environment bare "$built" && "$build/bare/bin/python" -m pip install -q --no-deps --force-reinstall "$built" && (cd "$work" && "$build/bare/bin/python" "$tests/smoke.py" | tee -a "$work/figures"; exit "${PIPESTATUS[0]}")
}
it_is_installed() {
    "$build/full/bin/python" -m pip uninstall -q -y libpccl pccl && environment full "$built"
}
cannot() { # why: it is skipped, a release that was asked for fails
    echo "SKIPPED python: $1"
    echo "0 passed, 0 failed"
    [ -z "${TORCH_RELEASE:-}" ]
    exit
}
types_are_checked() { (cd python && "$build/full/bin/python" -m mypy --strict --cache-dir "$build/mypy" pccl); }

if ! python3 -c 'import ensurepip, os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null; then
    cannot "python3-venv or python3-dev is not installed"
fi
if ! environment full -r "$requirements"; then
    cannot "pip cannot install what the tests need"
fi
tests=$PWD/tests/python
folders=()
check "pip builds a wheel of a clean clone" wheel
if [ -n "${built:-}" ]; then
    if [ -z "${TORCH_RELEASE:-}" ]; then
        check_each the_wheel_is_one_abi3_extension_and_small it_works_without_torch_and_numpy
        cat "$work/figures"
    elif [ $# = 0 ]; then
        folders=(tests/python/distributed tests/python/comms tests/python/multiworld)
    fi
    check_each types_are_checked it_is_installed
    if [ $# = 0 ]; then # beside the tests: both mostly wait
        "$build/full/bin/python" tests/python/distributed/torch_suite.py >"$build/torch_suite" 2>"$build/torch_suite.log" &
        suite=$!
    fi
    "$build/full/bin/python" -m pytest -n "$(($(nproc) + 1))" --maxprocesses 8 --dist worksteal "$@" "${folders[@]}"
    count "all of pytest's tests" $?
    if [ $# = 0 ]; then
        wait $suite
        status=$?
        cat "$build/torch_suite"
        count "all of torch's suite but what is named" $status
        [ -n "${TORCH_RELEASE:-}" ] || check "the quick starts in Python print what README.md shows" \
            env PATH="$build/full/bin:$PATH" python3 scripts/quick_starts.py PyTorch TorchComms MultiWorld
    fi
    if [ $# = 0 ] && [ -n "${TORCH_RELEASE:-}" ]; then
        "$build/full/bin/python" tests/python/distributed/torch_suite.py --as-backend 2>"$build/torch_suite_as_backend.log"
        count "all of torch's suite in groups of its own but what is named" $?
    fi
fi
sum_up
