#!/usr/bin/env bash
# test_package.sh - PCCL as those get it who use it: make, make install and make uninstall from a source folder with a blank
# in its name; then programs built against what was installed (find_package, pkg-config, the installed examples), and
# projects that hold it as a subdirectory.  Installs into temporary folders only.
# SPDX-License-Identifier: MIT
set -u -o pipefail
cd "$(dirname "$0")/.."
. scripts/testing.sh
tree="$work/a blank/pccl"
prefix="$work/a prefix"
build="$tree/build"
mkdir -p "$tree" "$work/fake"
cp -r CMakeLists.txt Makefile LICENSE README.md apps bench cmake docs examples include scripts src tests "$tree"
package=$tree/tests/package
version=$(sed -n 's/^#define PCCL_VERSION_[MP][A-Z]* //p' include/pccl.h | paste -sd .)
export CMAKE_GENERATOR=Ninja
unset DESTDIR LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH

in_tree() { (cd "$tree" && "$@"); }

# ---- what make builds ----
make_builds_library_and_programs_only() { # a user waits for no test
    in_tree make PREFIX="$prefix" || return 1
    [ -x "$build/bin/ccoip_master" ] && [ -x "$build/bin/pccl" ] && [ -f "$build/libpccl.so" ] && [ -f "$build/libpccl.a" ] &&
        [ "$(find "$build" -type f -executable -path '*/bin/*' | wc -l)" = 2 ] &&
        ! compgen -G "$build/tests/*/test_*" && ! compgen -G "$build/bench/*" && ! compgen -G "$build/examples/*"
}
warnings_are_errors_only_when_asked_for() { # another compiler's warning must not stop a user
    local object=CMakeFiles/pccl_objects.dir/src/core/planted.c.o
    echo 'static int planted;' >"$tree/src/core/planted.c"
    cmake -S "$tree" -B "$work/warn" && cmake --build "$work/warn" --target "$object" &&
        cmake -S "$tree" -B "$work/warn" -DPCCL_WERROR=ON &&
        fails_saying 'planted.*-Werror' cmake --build "$work/warn" --target "$object"
    local status=$?
    rm "$tree/src/core/planted.c"
    return $status
}
a_32_bit_compiler_is_refused_in_one_sentence() { # by the size of its pointers; its libraries need not be there
    fails_saying '^  PCCL needs a 64-bit system and compiler: this one makes 32-bit programs\.$' \
        cmake -S "$tree" -B "$work/small" -DCMAKE_C_FLAGS=-m32 -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY
}
an_option_of_pccl_1_0_without_effect_is_reported() { # not ignored in silence
    cmake -S "$tree" -B "$work/cuda" -DPCCL_BUILD_CUDA_SUPPORT=ON 2>&1 | tr -s ' \n' '  ' |
        grep -q 'CMake Warning.* PCCL_BUILD_CUDA_SUPPORT has no effect: .* no CUDA support' || return 1
    ! cmake -S "$tree" -B "$work/cuda" -DPCCL_BUILD_CUDA_SUPPORT=OFF 2>&1 | grep PCCL_BUILD_CUDA_SUPPORT
}

# ---- install ----
expected_files="bin/ccoip_master bin/pccl include/pccl.h include/pccl_topology.h include/ccoip.h include/ccoip_inet.h lib/libpccl.so lib/libpccl.a
    lib/libpccl.so.${version%%.*} lib/libpccl.so.$version lib/cmake/pccl/pccl-config.cmake lib/pkgconfig/pccl.pc
    lib/systemd/system/ccoip_master.service share/man/man1/ccoip_master.1
    share/man/man1/pccl.1 share/doc/pccl/LICENSE
    $(printf 'share/doc/pccl/%s ' README.md docs/*.md docs/guide/*.md docs/guide/python/*.md docs/internals/*.md examples/c/*.c examples/c/charlm/* examples/python/*/*.py)"
install_puts_everything_there_and_says_how_to_find_it() {
    local file cache=$tree/examples/python/training/__pycache__
    mkdir -p "$cache" && touch "$cache/launch.pyc" # as an example leaves it that has run
    in_tree make install PREFIX="$prefix" | tee "$work/said" || return 1
    for file in $expected_files; do
        [ -e "$prefix/$file" ] || { echo "missing: $file"; return 1; }
    done
    [ -z "$(find "$prefix" -name __pycache__ -o -path '*/docs/reference')" ] || { echo "what nobody reads is installed"; return 1; }
    grep '^ *export ' "$work/said" >"$work/environment" # the hint is used below, as it was printed
}
install_that_the_loader_finds_says_nothing_more() { # root's is found after ldconfig; this one only notes that it ran
    cat >"$work/fake/ldconfig" <<-end
	#!/bin/sh
	[ "\$1" = -p ] || { echo ran >>"$work/ldconfig.log"; exit; }
	printf '\tlibpccl.so.${version%%.*} (libc6,x86-64) => $prefix/lib/libpccl.so.${version%%.*}\n'
	end
    printf '#!/bin/sh\necho 0\n' >"$work/fake/id"
    chmod +x "$work/fake/ldconfig" "$work/fake/id"
    PATH=$work/fake:$PATH in_tree scripts/install.sh build >"$work/said" && cat "$work/said"
    ! grep -q export "$work/said" && [ "$(cat "$work/ldconfig.log")" = ran ] || return 1
    DESTDIR=$work/stage PATH=$work/fake:$PATH in_tree scripts/install.sh build && # a packager has no cache to renew
        [ "$(cat "$work/ldconfig.log")" = ran ] && [ -f "$work/stage$prefix/lib/libpccl.a" ]
}
install_where_one_may_not_write_says_what_to_do() {
    [ "$(id -u)" != 0 ] || { echo "root may write anywhere"; return 77; }
    in_tree make PREFIX=/proc/pccl && fails_saying 'make install PREFIX=$HOME/.local' in_tree make install PREFIX=/proc/pccl
}
with_hint() { (eval "$(cat "$work/environment")" && "$@"); } # each command in the environment that the install advised
find_package() {
    with_hint cmake -S "$package/findpackage" -B "$work/find" -DWANT="$version" &&
        cmake --build "$work/find" && "$work/find/consumer" "$version" && "$work/find/consumer_static" "$version"
}
pkg_config() {
    needs pkg-config || return
    with_hint make -C "$package/pkgconfig" && with_hint "$package/pkgconfig/consumer" "$version" &&
        "$package/pkgconfig/consumer_static" "$version" && [ "$(with_hint pkg-config --modversion pccl)" = "$version" ]
}
installed_examples_compile_as_they_are() (
    local examples=$prefix/share/doc/pccl/examples/c
    needs pkg-config || return
    cp -r "$examples" "$work/examples" && cd "$work/examples" || return 1
    with_hint sh -c 'eval "cc allreduce_min.c $(pkg-config --cflags --libs pccl) -o allreduce_min"' &&
        with_hint sh -c 'eval "cc charlm/*.c $(pkg-config --cflags --libs pccl) -lm -o train_charlm"' &&
        with_hint fails_saying --master ./train_charlm --help
)
page_is_sound_and_names_every_option() { # page, command...: that prints the options
    local page=$prefix/share/man/man1/$1 option said
    said=$(mandoc -T lint -W warning "$page") && [ -z "$said" ] || { echo "$said"; return 1; }
    mandoc -T ascii "$page" | sed 's/.\x08//g' >"$work/page"
    for option in $("${@:2}" | grep -oE -- '(^| )--?[a-zA-Z_-]+' | sort -u); do
        grep -q -- "$option" "$work/page" || { echo "not in the page: $option"; return 1; }
    done
}
manual_pages_are_sound_and_name_every_option() {
    needs mandoc || return
    page_is_sound_and_names_every_option ccoip_master.1 "$prefix/bin/ccoip_master" --help &&
        page_is_sound_and_names_every_option pccl.1 "$prefix/bin/pccl" --help &&
        page_is_sound_and_names_every_option pccl.1 "$prefix/bin/pccl" bench --help
}
installed_pccl_measures() { # from anywhere, with nothing set
    local said
    said=$(cd / && "$prefix/bin/pccl" bench -e 16 --iters 2) && grep -q 'Out of bounds values : 0 OK' <<<"$said"
}
unit=$prefix/lib/systemd/system/ccoip_master.service
unit_starts_the_installed_master() {
    local program
    program=$(sed -n 's/^ExecStart="\([^"]*\)".*/\1/p' "$unit")
    [ "$("$program" -V)" = "ccoip_master $version" ]
}
unit_is_one_that_systemd_takes() {
    local said
    needs systemd-analyze || return
    said=$(systemd-analyze verify --man=no "$unit" 2>&1 | grep -F ccoip_master) # it speaks of other units as well
    [ -z "$said" ] || { echo "$said"; return 1; }
}
uninstall_leaves_what_is_not_ours() {
    touch "$prefix/lib/theirs" "$prefix/share/doc/pccl/theirs"
    in_tree make uninstall || return 1
    find "$prefix" ! -type d
    [ "$(find "$prefix" ! -type d | wc -l)" = 2 ] && [ ! -e "$prefix/lib/cmake/pccl" ] &&
        fails_saying 'nothing was installed' in_tree make uninstall
}

# ---- as a part of another project ----
parent() { # options...: configures, builds and installs one that sets no build type
    cmake -S "$package/subdirectory" -B "$work/sub" -DPCCL_SOURCE="$tree" "$@" && cmake --build "$work/sub" &&
        cmake --install "$work/sub" --prefix "$work/parent"
}
subdirectory_is_not_installed_with_its_parent() {
    parent && "$work/sub/consumer" "$version" && "$work/sub/consumer_static" "$version" || return 1
    [ "$(cd "$work/parent" && find . ! -type d)" = ./bin/consumer ] && ! grep -q -- '-Werror' "$work/sub/build.ninja" &&
        grep -q -- '-O2' "$work/sub/build.ninja"
}
subdirectory_installed_on_request_is_a_package_that_works() { # and its licence does not stand where the parent's does
    parent -DPCCL_INSTALL=ON && [ -f "$work/parent/share/doc/pccl/LICENSE" ] &&
        [ "$(ls "$work/parent/share/doc")" = pccl ] && cmake -S "$package/findpackage" -B "$work/find2" -DWANT="$version" \
        -DCMAKE_PREFIX_PATH="$work/parent" && cmake --build "$work/find2" && "$work/find2/consumer" "$version" &&
        "$work/find2/consumer_static" "$version"
}

check_each make_builds_library_and_programs_only warnings_are_errors_only_when_asked_for \
    a_32_bit_compiler_is_refused_in_one_sentence an_option_of_pccl_1_0_without_effect_is_reported \
    install_puts_everything_there_and_says_how_to_find_it \
    install_that_the_loader_finds_says_nothing_more install_where_one_may_not_write_says_what_to_do find_package pkg_config \
    installed_examples_compile_as_they_are manual_pages_are_sound_and_name_every_option \
    installed_pccl_measures unit_starts_the_installed_master unit_is_one_that_systemd_takes uninstall_leaves_what_is_not_ours subdirectory_is_not_installed_with_its_parent \
    subdirectory_installed_on_request_is_a_package_that_works
sum_up
