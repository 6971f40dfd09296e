#!/usr/bin/env bash
# setup.sh WHAT... - installs what a fresh Debian or Ubuntu lacks for: build, check, verify, fuzz.
#
# Looks first and says nothing if everything is there; installs with apt as root or through sudo; else names what is
# missing.  Packages that this release does not have are left out: the part that needs them says so.
# SPDX-License-Identifier: MIT
set -eu

missing=""
want() { # command package...: the packages, unless the command is there
    command -v "$1" >/dev/null 2>&1 || missing="$missing ${*:2}"
}
want_file() { # pattern package...
    compgen -G "$1" >/dev/null || missing="$missing ${*:2}"
}

want_build() {
    want gcc gcc libc6-dev
    want cmake cmake
    want ninja ninja-build
}
want_clang() {
    if ! compgen -c | grep -qE '^clang(-1[4-9])?$'; then
        missing="$missing clang-14|clang"
    fi
    want_file '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' 'libclang-rt-14-dev|libclang-rt-dev'
    want_file '/usr/bin/llvm-symbolizer*' 'llvm-14|llvm' # stacks with names
}
for what in "$@"; do
    want_build
    case "$what" in
    build) ;;
    check)
        want_clang
        want python3 python3
        want g++ g++
        want pkg-config pkg-config
        want ip iproute2
        want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        want_file '/usr/aarch64-linux-gnu/lib/libc.so*' libc6-dev-arm64-cross
        want qemu-aarch64 qemu-user
        ;;
    fuzz) want_clang ;;
    verify)
        want spin spin
        want python3 python3
        ;;
    *)
        echo "setup.sh: unknown part '$what'" >&2
        exit 2
        ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
    as_root="sudo"
    if ! command -v sudo >/dev/null || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
        echo "setup: missing packages:$missing; install them as root, or run this once as a user with sudo" >&2
        exit 1
    fi
fi
if ! command -v apt-get >/dev/null; then
    echo "setup: missing:$missing (Debian package names); this system has no apt-get to install them with" >&2
    exit 1
fi
echo "setup: installing$missing"
$as_root apt-get update -qq >/dev/null || true # a stale list may still do
chosen=""
for choice in $missing; do # a|b: the first that this release has
    for package in ${choice//|/ }; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            chosen="$chosen $package"
            break
        fi
    done
done
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $chosen >/dev/null
