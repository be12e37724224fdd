#!/usr/bin/env bash
# Downloads ONNX Runtime Web into apps/xsent_apps/web/static/xsent/vendor: the program from npm, and its licences from the Python
# package of the same version, because only that has them:
#     tools/onnxruntime_web.sh
# To update, change `version`, run the script, and copy the checksums that it prints.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.30.0
sums='
11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90  ort.wasm.bundle.min.mjs
3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2  ort-wasm-simd-threaded.wasm
2f07c72751aed99790b8a4869cf2311df85a860b22ded05fa22803587a48922c  LICENSE
143764b952fdb1a7c69ce653bfba74a7744d6a8a573bfb73e235fba356c83de3  ThirdPartyNotices.txt
'
vendor=$PWD/apps/xsent_apps/web/static/xsent/vendor
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent "onnxruntime-web@$version" >/dev/null
tar -xzf "onnxruntime-web-$version.tgz" --strip-components=2 package/dist
python3 -m pip download --quiet --no-deps --only-binary :all: "onnxruntime==$version"
unzip -qj onnxruntime-*.whl onnxruntime/LICENSE onnxruntime/ThirdPartyNotices.txt
sums=$(sed '/^$/d' <<<"$sums")
sha256sum --strict --check <<<"$sums" || { cut -d ' ' -f 3 <<<"$sums" | xargs sha256sum; exit 1; }
mkdir -p "$vendor"
cp ort.wasm.bundle.min.mjs "$vendor/onnxruntime.js"  # some servers know no type for .mjs
gzip -9 --no-name <ort-wasm-simd-threaded.wasm >"$vendor/onnxruntime.wasm.gz"
cp LICENSE "$vendor/LICENSE.txt"
cp ThirdPartyNotices.txt "$vendor"
