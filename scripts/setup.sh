#!/usr/bin/env bash
# setup.sh WHAT... - installs what a fresh Debian or Ubuntu lacks for: build, check, verify, fuzz, compare, wan, python, wheels.
#
# Looks first and says nothing if everything is there; installs with apt as root or through sudo; else prints the command
# that does.  Some packages are needed, others wished for: the tests that use these are skipped without, and say so.  Where
# names differ between releases the first that this one has is taken.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."

needed=() # a name, or a|b: the first that this release has
wished=()
is_there() { PATH=$PATH:/usr/sbin command -v "$1" >/dev/null; }
want() { # command package...: the packages, unless the command is there
    is_there "$1" || needed+=("${@:2}")
}
wish() {
    is_there "$1" || wished+=("${@:2}")
}
want_file() { # pattern package...
    compgen -G "$1" >/dev/null || needed+=("${@:2}")
}
wish_file() {
    compgen -G "$1" >/dev/null || wished+=("${@:2}")
}
has_python_headers() {
    python3 -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null
}
has_apt() { command -v apt-cache >/dev/null; }
known() { has_apt && apt-cache show "$1" >/dev/null 2>&1; } # a name that nobody provides is no package
wish_newest_clang() {
    local name
    for name in $(has_apt && apt-cache pkgnames clang- 2>/dev/null | grep -xE 'clang-[0-9]+' | sort -rV); do
        if known "$name"; then
            wish "$name" "$name"
            return
        fi
    done
}

want_build() {
    want gcc gcc libc6-dev
    want cmake cmake
    want ninja ninja-build
}
want_clang() {
    scripts/clang.sh >/dev/null 2>&1 || needed+=(clang)
    want_file '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' 'libclang-rt-dev|libclang-rt-14-dev'
    wish_file '/usr/bin/llvm-symbolizer*' llvm # stacks with names
}
want_check() {
    want_clang
    want g++ g++
    want python3 python3
    want_file /usr/include/rdma/fi_endpoint.h libfabric-dev
    want_file /usr/include/ini.h libinih-dev
    wish_newest_clang
    wish pkg-config pkg-config
    wish mandoc mandoc
    wish spin spin
    wish ip iproute2
    wish aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    wish_file '/usr/aarch64-linux-gnu/lib/libc.so*' libc6-dev-arm64-cross
    wish qemu-aarch64 qemu-user
    wish_file '/usr/lib/python3*/ensurepip' python3-venv
    has_python_headers || wished+=(python3-dev)
}
want_compare() { # what one library is compared with; without one of them the others are
    want python3 python3
    wish mpicc.openmpi openmpi-bin libopenmpi-dev
    wish mpicc.mpich mpich libmpich-dev
    wish_file '/usr/lib/python3*/ensurepip' python3-venv
}
want_wan() { # an emulated wide area, and what one library is compared with there
    want python3 python3
    want_file /usr/include/ini.h libinih-dev
    wish mpicc.openmpi openmpi-bin libopenmpi-dev
    wish_file '/usr/lib/python3*/ensurepip' python3-venv
}
want_python() { # what the Python package is built with
    want python3 python3
    want_file '/usr/lib/python3*/ensurepip' python3-venv
    has_python_headers || needed+=(python3-dev)
}
want_wheels() { # zig compiles them; what is wished for is what they are tried with
    want_python
    want readelf binutils
    wish qemu-aarch64 qemu-user
    wish mmdebstrap mmdebstrap
}
want_all() { # parts
    local what
    needed=()
    wished=()
    for what in "$@"; do
        want_build
        case "$what" in
        build) ;;
        check) want_check ;;
        fuzz) want_clang ;;
        compare) want_compare ;;
        wan) want_wan ;;
        python) want_python ;;
        wheels) want_wheels ;;
        verify) want spin spin && want python3 python3 ;;
        *)
            echo "setup.sh: unknown part '$what'" >&2
            exit 2
            ;;
        esac
    done
}
choose() { # choices...: names for apt; without its lists (a fresh system before the first update) the first of each
    local choice package lists=false
    if known gcc; then
        lists=true
    fi
    for choice in "$@"; do
        for package in ${choice//|/ }; do
            if ! $lists || known "$package"; then
                echo "$package"
                break
            fi
        done
    done | sort -u
}
root_command() { # nothing for root, sudo where it works or can ask; fails without
    [ "$(id -u)" != 0 ] || return 0
    command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; } && echo sudo
}

megabytes() { # packages...: " (N MB to download)", if apt can tell
    apt-get install --print-uris -y -qq --no-install-recommends "$@" 2>/dev/null |
        awk '$1 ~ /^.[a-z]+:/ { bytes += $3 } END { if (bytes) { printf " (%.1f MB to download)", bytes / 1e6 } }'
}
install() { # packages...
    echo "setup: installing $*$(megabytes "$@")"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" \
        >/dev/null 2> >(grep -v "^debconf: delaying package configuration" >&2)
}
do_without() { # why: no error if something can be skipped
    echo "setup: $1" >&2
    [ ${#needed[@]} = 0 ] || exit 1
    echo "setup: without these some of it is skipped" >&2
    exit 0
}

want_all "$@"
[ ${#needed[@]} != 0 ] || [ ${#wished[@]} != 0 ] || exit 0
if ! has_apt; then
    choices=("${needed[@]}" "${wished[@]}")
    do_without "missing here: ${choices[*]//|/ or } (Debian's names of the packages); there is no apt to install them with"
fi
if ! as_root=$(root_command); then
    do_without "packages are missing and you are not root; as root:
    apt update && apt install --no-install-recommends $(choose "${needed[@]}" "${wished[@]}" | xargs)"
fi
$as_root apt-get update -qq >/dev/null || true # a stale list may still do
want_all "$@"                                  # the newest of something is known only now
mapfile -t packages < <(choose "${needed[@]}" "${wished[@]}")
if [ ${#packages[@]} = 0 ]; then
    do_without "this release has no package for what is missing: ${needed[*]} ${wished[*]}"
fi
if ! install "${packages[@]}"; then
    mapfile -t packages < <(choose "${needed[@]}")
    if [ ${#packages[@]} != 0 ] && install "${packages[@]}"; then
        needed=()
    fi
    do_without "apt could not install all of it"
fi
