#!/bin/sh
# Packs a release: pack_release.sh [--check PROGRAM] OUT ROOT [MODE SOURCE PATH]...
#
# With --check the release's own ROOT/PROGRAM looks at its configuration and at the modes of its
# applications first, as `check --no-env` does: what it refuses is not packed.
#
# OUT gets a tar.gz of each SOURCE as ROOT/PATH with MODE. Only the contents, paths and modes given
# decide its bytes: order, owners, times and directories' modes are fixed, no `.` entry is made.
set -eu
export LC_ALL=C TZ=UTC0
program=
if test "$1" = --check; then
  program=$2
  shift 2
fi
out=$1 root=$2
shift 2

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
while test $# -gt 0; do
  mkdir -p "$stage/$root/$(dirname "$3")"
  install -m "$1" "$2" "$stage/$root/$3"
  shift 3
done
test -z "$program" || "$stage/$root/$program" check --no-env >/dev/null
find "$stage/$root" -type d -exec chmod 0755 {} +
tar --create --format=gnu --sort=name --mtime=@315532800 --owner=0 --group=0 --numeric-owner \
  --directory="$stage" --file="$stage/release.tar" "$root"
gzip -n -9 <"$stage/release.tar" >"$out"
