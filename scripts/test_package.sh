#!/usr/bin/env bash
# test_package.sh - builds and runs a program against PCCL in each way a project can take it in: as a subdirectory, by
# find_package, by pkg-config; shared and static.  Installs into a temporary prefix only.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
source_dir=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cp -r tests/package "$work/package" # the makefile builds where it stands

subdirectory() {
    cmake -S "$work/package/subdirectory" -B "$work/sub" -G Ninja -DPCCL_SOURCE="$source_dir" &&
        cmake --build "$work/sub" && "$work/sub/consumer" && "$work/sub/consumer_static"
}
install_to_prefix() {
    cmake -S . -B "$work/build" -G Ninja -DPCCL_DEVELOPER=OFF && cmake --build "$work/build" &&
        cmake --install "$work/build" --prefix "$prefix" && [ -x "$prefix/bin/ccoip_master" ]
}
find_package() {
    cmake -S "$work/package/findpackage" -B "$work/find" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$work/find" && "$work/find/consumer" && "$work/find/consumer_static"
}
pkg_config() {
    local libdir
    libdir=$(dirname "$(find "$prefix" -name libpccl.so)")
    PKG_CONFIG_PATH=$libdir/pkgconfig make -C "$work/package/pkgconfig" &&
        LD_LIBRARY_PATH=$libdir "$work/package/pkgconfig/consumer" && "$work/package/pkgconfig/consumer_static"
}

passed=0
failed=0
for way in subdirectory install_to_prefix find_package pkg_config; do
    if $way >"$work/$way.log" 2>&1; then
        echo "PASS $way"
        passed=$((passed + 1))
    else
        tail -n 30 "$work/$way.log"
        echo "FAIL $way"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
