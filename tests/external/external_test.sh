#!/bin/bash
# A workspace of somebody else, in an otherwise empty folder: builds its servers, runs its test,
# makes its release, and runs that. Only `shop/` and the checkout take part, nothing of this test's
# own build.
set -eu
here=$(dirname "$(realpath "$0")")
otp=$(realpath "$here/../..")
. "$otp/bazel/setup.sh"

release=$TEST_TMPDIR/elsewhere/shop-1.0.0

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# Not optimised: the whole library is built once more here, and only whether it can be is asked.
bazel() {
  command bazel --output_base="$TEST_TMPDIR/output" --max_idle_secs=30 "$1" \
    "$otp_disk_cache" --jobs=2 --noshow_progress --compilation_mode=fastbuild "${@:2}"
}

finish() {
  test ! -x "$release/bin/shop" || "$release/bin/shop" stop >/dev/null 2>&1 || true
  cd "$TEST_TMPDIR/shop" &&
    command bazel --output_base="$TEST_TMPDIR/output" --max_idle_secs=30 shutdown || true
  chmod -R u+w "$TEST_TMPDIR/output" && rm -rf "$TEST_TMPDIR/output"
}
trap finish EXIT

build() {
  cp -r "$here/shop" "$TEST_TMPDIR/shop"
  cd "$TEST_TMPDIR/shop"
  # As its README says: the settings are copied, the dependencies loaded.
  cp "$otp/bazel/otp.bazelrc" .bazelrc
  sed -i "s|@OTP@|$otp|" WORKSPACE
  bazel test --test_output=errors //... || fail "the workspace does not build or its test fails"
  bazel build @sqlite3//:of_the_shop || fail "otp_dependencies() replaced a repository of the user"
}

unpack() {
  mkdir "$TEST_TMPDIR/elsewhere"
  tar -xzf bazel-bin/shop-1.0.0.tar.gz -C "$TEST_TMPDIR/elsewhere"
  cd "$release"
  foreign=$(readelf -d bin/shop | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|ld-linux-x86-64)\.so' || true)
  test -z "$foreign" || fail "the program needs more than glibc: $foreign"
}

check_configurations() {
  bin/shop check || fail "the shipped configuration is refused"
  sed 's/strategy/strateggy/' config/shop.yaml >wrong.yaml
  status=0
  said=$(bin/shop check wrong.yaml 2>&1) || status=$?
  test $status = 2 || fail "check of a wrong configuration ended with $status: $said"
  case "$said" in
    *wrong.yaml:3:3:*strateggy*) ;;
    *) fail "check does not say where the mistake is: $said" ;;
  esac
}

run() {
  bin/shop version | grep -q '1\.0\.0' || fail "version does not say 1.0.0"
  # The cashier ends with a failure unless the till holds 42 after its call.
  bin/shop start || fail "start"
  bin/shop status || fail "status of the running shop"
  bin/shop tree | grep -q till || fail "tree does not name the till"
  bin/shop stop || fail "stop"
  status=0
  bin/shop status || status=$?
  test $status = 3 || fail "status of the stopped shop is $status"
}

build
unpack
check_configurations
run
