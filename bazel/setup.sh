#!/bin/sh
# The one place that installs what a build needs. ./test and ./run source it; it can be run alone.
#
# Installs the Debian packages that are missing (as root, or through sudo without a password: it
# never asks) and sees to a usable HOME, which Bazel insists on. Ends with status 1 when it cannot.

otp_packages="
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  clang-19 lld-19 libclang-rt-19-dev libstdc++-12-dev binutils
  libabsl-dev libboost1.81-dev libyaml-cpp-dev catch2 libsqlite3-dev
  ca-certificates curl git python3 procps util-linux"

otp_setup_fail() {
  echo "setup: $*" >&2
  exit 1
}

otp_missing_packages() {
  for package in $otp_packages; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=none
    test "$status" = installed || printf ' %s' "$package"
  done
}

otp_install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    otp_setup_fail "this is not Debian; install the equivalents of:" $otp_packages
  missing=$(otp_missing_packages)
  test -n "$missing" || return 0
  root=
  if test "$(id -u)" != 0; then
    sudo -n true 2>/dev/null ||
      otp_setup_fail "these Debian packages are missing:$missing
setup: run as root: apt-get update && apt-get install -y --no-install-recommends$missing"
    root="sudo -n"
  fi
  echo "setup: installing$missing" >&2
  apt="$root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300"
  {
    $apt update && $apt install -y --no-install-recommends $missing
  } >&2 </dev/null || otp_setup_fail "apt-get could not install$missing"
}

# Bazel keeps its output under HOME and refuses to run without one. The `~` of .bazelrc's disk cache
# is the home of the password file, which may not exist, so the scripts give the cache by its whole
# name.
otp_find_home() {
  if test -z "${HOME:-}" || ! test -w "$HOME"; then
    HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
    test -n "$HOME" && test -w "$HOME" || HOME=${TMPDIR:-/tmp}/otp-home-$(id -u)
    mkdir -p "$HOME" || otp_setup_fail "no writable home directory"
  fi
  export HOME
  otp_disk_cache=--disk_cache=$HOME/.cache/otp-bazel
}

otp_install_packages
otp_find_home
