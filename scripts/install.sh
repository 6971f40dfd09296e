#!/usr/bin/env bash
# install.sh BUILD [--remove] - installs what BUILD holds to the prefix it was configured for, and says how programs find it;
# or removes what the last install from BUILD put there.
#
# DESTDIR in the environment is put in front of every path, as packagers want it.  Uninstalling goes by the list that CMake
# writes: a file of anybody else stays, whatever folder it is in.
# SPDX-License-Identifier: MIT
set -eu
build=${1:?build directory}
manifest=$build/install_manifest.txt
root=${DESTDIR:-}
PATH=$PATH:/usr/sbin:/sbin # ldconfig

cached() { # entry of CMake's cache
    sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}
renew_loader_cache() { # packagers have nothing to renew, users may not
    [ -n "$root" ] || [ "$(id -u)" != 0 ] || ldconfig
}
loader_finds() { # file
    local known
    known=$(ldconfig -p | sed -n "s/^[[:space:]]*${1##*/} .* => //p" | head -n 1)
    [ -n "$known" ] && [ "$known" -ef "$1" ]
}
may_write() { # path: to it, or where it would be made
    local path=$1
    until [ -e "$path" ]; do
        path=$(dirname "$path")
    done
    [ -w "$path" ]
}

do_install() {
    local prefix lib soname
    prefix=$(cached CMAKE_INSTALL_PREFIX)
    lib=$prefix/$(cached CMAKE_INSTALL_LIBDIR)
    if ! may_write "$root$lib"; then
        echo "install: you may not write to $root$lib: be root, or choose a place: make install PREFIX=\$HOME/.local" >&2
        exit 1
    fi
    rm -f "$manifest" # may be root's, in a folder of ours
    cmake --install "$build" | grep -v '^-- Installing: \|^-- Up-to-date: \|^-- Install configuration: ' || true
    [ -s "$manifest" ] || exit 1
    renew_loader_cache
    echo "installed to $root$prefix: $(grep -c '' "$manifest") files, see $manifest"
    [ -z "$root" ] || return 0
    soname=$(basename "$(find "$lib" -maxdepth 1 -name 'libpccl.so.*' -type l)")
    if ! loader_finds "$lib/$soname"; then
        echo "Programs look for libraries elsewhere; for them to find this one:"
        echo "    export LD_LIBRARY_PATH='$lib' PKG_CONFIG_PATH='$lib/pkgconfig' CMAKE_PREFIX_PATH='$prefix'"
    fi
}

do_remove() {
    local file folder
    if [ ! -f "$manifest" ]; then
        echo "uninstall: nothing was installed from $build: $manifest is not there" >&2
        exit 1
    fi
    while read -r file || [ -n "$file" ]; do
        rm -f "$root$file"
    done <"$manifest"
    # Folders that carry our name, deepest first, if nobody else has put anything there.
    sed 's|/[^/]*$||' "$manifest" | sort -ru | while read -r folder; do
        while [[ $folder/ == */pccl/* ]] && rmdir "$root$folder" 2>/dev/null; do
            folder=${folder%/*}
        done
    done
    rm "$manifest"
    renew_loader_cache
    echo "uninstalled"
}

case "${2:-}" in
"") do_install ;;
--remove) do_remove ;;
*)
    echo "install.sh: unknown option '$2'" >&2
    exit 2
    ;;
esac
