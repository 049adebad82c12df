#!/usr/bin/env bash
# check_install.sh <cmake|pkg_config> <build folder> <compiler> [sanitizer]
#
# Installs the build to a temporary prefix, then builds and runs a tiny program that knows only
# that prefix: what is missing from the installation fails here and not at a user's desk.
set -euo pipefail

way=$1 build=$2 compiler=$3 sanitizer=${4:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
flags=()
[[ -z $sanitizer ]] || flags=("-fsanitize=${sanitizer/address/address,undefined}")

build_with_cmake() {
  cmake -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="${flags[*]:-}" >/dev/null
  cmake --build "$work/build"
  "$work/build/consumer"
  "$work/build/consumer_static"
}

build_with_pkg_config() {
  local config
  config=$(find "$prefix" -name shardbus.pc -printf '%h')
  export PKG_CONFIG_PATH=$config
  pkg-config --print-errors --exists 'shardbus >= 0.1'
  # shellcheck disable=SC2046  # the answer of pkg-config is meant to be split into words
  "$compiler" -std=c++20 "${flags[@]}" "$here/consumer/consumer.cpp" -o "$work/consumer" \
    $(pkg-config --cflags --libs shardbus)
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir shardbus) "$work/consumer"
}

# As a user would: no LD_LIBRARY_PATH, and from a prefix that the build did not know.
run_programs() {
  local program
  for program in shardbusd shardbusctl; do
    [[ -x $prefix/bin/$program ]] || continue  # built without the tools
    env -u LD_LIBRARY_PATH "$prefix/bin/$program" --version
  done
}

cmake --install "$build" --prefix "$prefix" >/dev/null
run_programs
"build_with_$way"
