#!/usr/bin/env bash
# test_wheels.sh [DIST] - what scripts/wheels.sh has made, as those get it who have no compiler: installed and tried by each
# CPython of this machine, by that of Debian 13, and on ARM, under qemu-aarch64 in a prefix that is all ARM.
#
# Systems that this machine is not are unpacked from their packages, in build/wheels, from the mirror that apt is set up with.
# Figures are printed; the last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
. scripts/testing.sh
dist=$(cd "${1:-build/dist}" && pwd) || exit
roots=$PWD/build/wheels
smoke=$PWD/tests/python/smoke.py
tools=$PWD/build/wheels/tools/bin/python
figures=$work/figures
: >"$figures"
compilers="cc gcc clang c++ cmake ninja make"

wheel_for() { echo "$dist"/libpccl-*-cp310-abi3-manylinux_2_28_"$1".whl; } # MACHINE
options_for() { # VERSION MACHINE: pip's, for a Python that is not the one it runs in
    local tag
    printf -- '--only-binary=:all: --implementation cp --python-version %s' "$1"
    for tag in manylinux_2_28 manylinux_2_17 manylinux2014; do
        printf -- ' --platform %s_%s' $tag "$2"
    done
}
what_it_needs() { # VERSION MACHINE FOLDER: the wheel, and wheels of all that it requires
    # shellcheck disable=SC2046 # words
    "$tools" -m pip download -q $(options_for "$1" "$2") -d "$3" "$(wheel_for "$2")"
}
interpreter() { # VERSION: its path
    local python
    for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python3; do
        if "$python" -c "import sys, ensurepip, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "there is no python$1 with venv"
    return 77
}
try_in() { # VENV WHEELS: installs and tries it there, with nothing else on PATH
    local program
    for program in $compilers; do
        ! PATH=$1/bin command -v "$program" || return 1
    done
    PATH=$1/bin "$1/bin/python" -m pip install -q --no-index --find-links "$2" libpccl && PATH=$1/bin "$1/bin/python" -m pip check || return 1
    (cd "$work" && PATH=$1/bin "$1/bin/ccoip_master" --version && PATH=$1/bin "$1/bin/pccl_master" --help >/dev/null &&
        PATH=$1/bin "$1/bin/python" "$smoke" >>"$figures")
}
by_python() { # VERSION
    local python
    python=$(interpreter "$1") || { echo "$python"; return 77; }
    what_it_needs "$1" "$(uname -m)" "$work/wheels$1" && "$python" -m venv "$work/venv$1" && try_in "$work/venv$1" "$work/wheels$1"
}

debian() { # ARCHITECTURE VARIANT PACKAGE...: Debian 13 with these, as mmdebstrap makes it; its folder goes to $root
    local mirror
    root=$roots/debian-13-$1
    [ ! -d "$root" ] || return 0
    needs mmdebstrap apt-get || return
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || { echo "apt has no mirror of Debian"; return 77; }
    mmdebstrap --quiet --variant="$2" --architectures="$1" --include="${*:3}" trixie "$work/$1" "$mirror" ||
        return 77 # its last line says why
    mv "$work/$1" "$root"
}
inside() { # COMMAND...: in $root, with the machine's devices, for as long as it lasts
    # shellcheck disable=SC2016 # of the shell inside
    unshare --mount --pid --fork --kill-child sh -c 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" &&
        exec env -i PATH=/opt/try/venv/bin "$(PATH=$PATH:/usr/sbin command -v chroot)" "$0" "$@"' "$root" "$@"
}
debian_13_has_it_in_a_chroot() {
    [ "$(id -u)" = 0 ] && unshare --mount true || { echo "needs root, and a mount namespace of its own"; return 77; }
    [ "$(uname -m)" = x86_64 ] || { echo "is made for x86_64"; return 77; }
    debian amd64 minbase python3-venv || return
    rm -rf "$root/opt/try"
    mkdir -p "$root/opt/try"
    cp "$smoke" "$root/opt/try" && what_it_needs 3.13 x86_64 "$root/opt/try/wheels" || return 1
    inside /usr/bin/python3 -m venv /opt/try/venv && inside python -m pip install -q --no-index --find-links /opt/try/wheels libpccl &&
        inside ccoip_master --version && inside python /opt/try/smoke.py >"$work/said" &&
        sed 's/^/Debian 13, /' "$work/said" >>"$figures"
}
arm_has_it_under_qemu() { # the master, too, is the wheel's; an emulated Python can start no process
    local arm=$work/arm status
    needs qemu-aarch64 || return
    debian arm64 extract base-files python3 || return
    mkdir -p "$arm/bin"
    # shellcheck disable=SC2046 # words
    "$tools" -m pip install -q $(options_for 3.13 aarch64) --target "$arm/site" "$(wheel_for aarch64)" || return 1
    printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s/site/pccl/bin/ccoip_master "$@"\n' "$root" "$arm" >"$arm/bin/ccoip_master"
    chmod +x "$arm/bin/ccoip_master"
    build=$arm start_master --listen 127.0.0.1:0 || return 1
    PYTHONPATH=$arm/site PYTHONNOUSERSITE=1 timeout 120 qemu-aarch64 -L "$root" "$root/usr/bin/python3" "$smoke" "$address"
    status=$?
    stop_master && return $status
}

there_are_a_source_distribution_and_a_wheel_for_each_machine() {
    [ -f "$(wheel_for x86_64)" ] && [ -f "$(wheel_for aarch64)" ] &&
        [ "$(find "$dist" -name '*.whl' | wc -l)" = 2 ] && [ "$(find "$dist" -name 'libpccl-*.tar.gz' | wc -l)" = 1 ]
}
figures_of() { # MACHINE
    local folder=$work/$1.wheel
    mkdir "$folder"
    python3 -m zipfile -e "$(wheel_for "$1")" "$folder"
    printf '%s: %s bytes; requires %s\n    and %s, of glibc at most %s\n' "$1" "$(stat -c %s "$(wheel_for "$1")")" \
        "$(sed -n '/extra ==/d; s/^Requires-Dist: //p' "$folder"/libpccl-*.dist-info/METADATA | paste -sd ' ')" \
        "$(readelf -d "$folder"/pccl/*.so "$folder"/pccl/bin/* | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u | paste -sd ' ')" \
        "$(readelf -V "$folder"/pccl/*.so "$folder"/pccl/bin/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)"
}

check_each there_are_a_source_distribution_and_a_wheel_for_each_machine
for version in 3.10 3.11 3.12 3.13 3.14; do
    check "a new venv of Python $version without a compiler has it" by_python $version
done
check_each debian_13_has_it_in_a_chroot arm_has_it_under_qemu
figures_of x86_64
figures_of aarch64
cat "$figures"
sum_up
