#!/bin/bash
# A workspace of somebody else, in an otherwise empty folder: builds its server and runs its test.
# Only `shop/` and the checkout take part, nothing of this test's own build.
set -eu
here=$(dirname "$(realpath "$0")")
otp=$(realpath "$here/../..")
. "$otp/bazel/setup.sh"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

cd "$TEST_TMPDIR"
cp -r "$here/shop" shop
cd shop
# As its README says: the settings are copied, the dependencies loaded.
cp "$otp/bazel/otp.bazelrc" .bazelrc
sed -i "s|@OTP@|$otp|" WORKSPACE

bazel() {
  command bazel --output_base="$TEST_TMPDIR/output" --max_idle_secs=30 "$1" \
    "$otp_disk_cache" --jobs=2 --noshow_progress "${@:2}"
}
finish() {
  bazel shutdown >/dev/null 2>&1 || true
  chmod -R u+w "$TEST_TMPDIR/output" && rm -rf "$TEST_TMPDIR/output"
}
trap finish EXIT

bazel test --test_output=errors //... || fail "the workspace does not build or its test fails"
bazel build @sqlite3//:of_the_shop || fail "otp_dependencies() replaced a repository of the user"
