#!/usr/bin/env bash
# Builds the sdist and, from it, the wheel of the last commit into FOLDER:
#     tools/build.sh FOLDER
# The same Python gives the same bytes on every machine. So the script pins the version of setuptools, and the times, owners and
# modes that setuptools takes from the machine.
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."
umask 022
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) LC_ALL=C.UTF-8
export SOURCE_DATE_EPOCH LC_ALL

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
python="$folder/venv/bin/python -m"
$python pip install --quiet --disable-pip-version-check build==1.6.1 setuptools==84.2.1
mkdir "$folder/source"
git archive HEAD | tar --extract --no-same-permissions --directory "$folder/source"
$python build --no-isolation --sdist --outdir "$folder" "$folder/source" >/dev/null
sdist=$(basename "$folder"/*.tar.gz)
tar --extract --file "$folder/$sdist" --directory "$folder"
tar --create --directory "$folder" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX "${sdist%.tar.gz}" | gzip -9 --no-name >"$out/$sdist"
$python build --no-isolation --wheel --outdir "$out" "$folder/${sdist%.tar.gz}" >/dev/null
ls -l "$out" | awk 'NR > 1 { printf "%s %.1f MB\n", $NF, $5 / 1e6 }'
