#!/bin/bash
# R-021: the tarball must not remember the builder's umask, folder or the modes of the checkout.
set -eu
pack=$PWD/bazel/pack_release.sh
cd "$TEST_TMPDIR"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# build UMASK FOLDER MODE: packs the same files from FOLDER, where they have MODE.
build() {
  (
    umask "$1"
    mkdir -p "$2/in"
    printf 'program' >"$2/in/main"
    printf '{}' >"$2/in/tree.yaml"
    chmod "$3" "$2/in/main" "$2/in/tree.yaml"
    cd "$2"
    "$pack" out.tar.gz bank-1.0 0755 in/main bin/bank 0644 in/tree.yaml config/bank.yaml \
      0644 in/tree.yaml share/a/b.yaml
  )
}

build 022 one 0644
build 077 two/deeper 0600
build 002 three 0775
cmp one/out.tar.gz two/deeper/out.tar.gz || fail "umask 077 and 0600 sources changed the bytes"
cmp one/out.tar.gz three/out.tar.gz || fail "umask 002 and 0775 sources changed the bytes"

tar -tvf one/out.tar.gz --numeric-owner | awk '{print $1, $2, $6}' >listing
cat >expected <<'EOF'
drwxr-xr-x 0/0 bank-1.0/
drwxr-xr-x 0/0 bank-1.0/bin/
-rwxr-xr-x 0/0 bank-1.0/bin/bank
drwxr-xr-x 0/0 bank-1.0/config/
-rw-r--r-- 0/0 bank-1.0/config/bank.yaml
drwxr-xr-x 0/0 bank-1.0/share/
drwxr-xr-x 0/0 bank-1.0/share/a/
-rw-r--r-- 0/0 bank-1.0/share/a/b.yaml
EOF
diff expected listing || fail "the archive's listing is not the expected one"
