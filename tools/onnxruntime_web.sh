#!/usr/bin/env bash
# Makes apps/web/static/vendor again: what the page runs the model with, from npm, where it is packed:
#     tools/onnxruntime_web.sh
# To take a newer one, change the version, run it, and put in the sums that it then reports; its licence lies beside.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.30.0
sums='
11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90  ort.wasm.bundle.min.mjs
3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2  ort-wasm-simd-threaded.wasm
'
vendor=$PWD/apps/web/static/vendor
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent "onnxruntime-web@$version" >/dev/null
tar -xzf "onnxruntime-web-$version.tgz" --strip-components=2 package/dist
sha256sum --strict --check <<<"$(sed '/^$/d' <<<"$sums")" || { sha256sum ort.wasm.bundle.min.mjs ort-wasm-simd-threaded.wasm; exit 1; }
mkdir -p "$vendor"
cp ort.wasm.bundle.min.mjs "$vendor/onnxruntime.js"  # not .mjs, which some servers know no type for
gzip -9 --no-name <ort-wasm-simd-threaded.wasm >"$vendor/onnxruntime.wasm.gz"
