# Sourced by tests/run and bin/quickstart: what a fresh Debian 12 needs, and how to build.
# The package list stands here and nowhere else.

shardbus_packages=(
  # compiler and build
  g++ cmake ninja-build ccache pkg-config make git ca-certificates
  # libraries of the product
  libzmq3-dev cppzmq-dev libmsgpack-cxx-dev libcli11-dev libspdlog-dev libtomlplusplus-dev
  nlohmann-json3-dev robin-map-dev
  # tests
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  python3 python3-zmq python3-msgpack python3-pytest
  # fuzzing and tidy
  clang clang-format clang-tidy libclang-rt-14-dev
)

shardbus_say() { printf '== %s\n' "$*"; }

shardbus_fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

shardbus_missing_packages() {
  local package
  for package in "${shardbus_packages[@]}"; do
    if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

shardbus_as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    shardbus_fail "cannot install packages: run as root or install sudo; needed: $*"
  fi
}

# Installs what is missing. Asks the package servers nothing when everything is there, so that a
# machine without network can still build and test.
shardbus_install_packages() {
  command -v dpkg-query >/dev/null || shardbus_fail "this script knows Debian 12 only (no dpkg)"
  local missing
  mapfile -t missing < <(shardbus_missing_packages)
  [[ ${#missing[@]} -gt 0 ]] || return 0
  shardbus_say "installing ${missing[*]}"
  shardbus_as_root apt-get -q update || shardbus_fail "apt-get update failed"
  shardbus_as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q install -y --no-install-recommends "${missing[@]}" ||
    shardbus_fail "apt-get install failed"
}

# shardbus_build <source folder> <preset> [targets ...]
shardbus_build() {
  local source=$1 preset=$2
  shift 2
  (
    cd "$source" || exit 1
    shardbus_say "configuring preset $preset"
    cmake --preset "$preset" >/dev/null || exit 1
    shardbus_say "building in build/$preset"
    cmake --build --preset "$preset" ${1:+--target "$@"}
  ) || shardbus_fail "the build of preset $preset failed"
}
