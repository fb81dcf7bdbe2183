#!/bin/bash
# ./test ends with its line of numbers when Bazel cannot start, and refuses what it does not know.
set -eu
folder=$TEST_TMPDIR/a\ clone
mkdir -p "$folder/bazel"
cp test "$folder"
cp bazel/tally.py "$folder/bazel"
echo 'otp_disk_cache=--disk_cache=none' >"$folder/bazel/setup.sh"
printf '#!/bin/sh\nexit 37\n' >"$folder/bazel/bazel"
chmod +x "$folder/bazel/bazel"
PATH=$folder/bazel:$PATH

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# run ARGS...: leaves what ./test says in `output` and `status`.
run() {
  status=0
  output=$("$folder/test" "$@" 2>&1) || status=$?
}

for mode in fast all; do
  run $mode
  test $status = 1 || fail "$mode: status $status"
  test "$(tail -n 1 <<<"$output")" = "0 passed, 1 failed" || fail "$mode: $output"
  grep -q '^FAILED bazel ended with status 37$' <<<"$output" || fail "$mode: $output"
done

for wrong in "fst" "fast fst" "fast --jobs 2"; do
  run $wrong
  test $status = 2 || fail "$wrong: status $status"
  grep -q 'is no mode (all, fast, conformance)' <<<"$output" || fail "$wrong: $output"
done
run fast --config=x -- //otp/config:check_test
test $status = 1 || fail "a target was refused: $output"
