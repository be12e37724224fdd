#!/usr/bin/env bash
# Builds the npm package `xsent` into FOLDER: the modules of the page's encoder and search, and the built-in model.
#     tools/npm.sh FOLDER
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r apps/xsent_apps/web/static/xsent/. runtime/xsent/notations.js LICENSE "$folder"
mkdir "$folder/model"
cp runtime/xsent/builtin/{xsent.json,sentencepiece.model,model.onnx,embeddings.bin,weights.bin,README.md} "$folder/model"
npm pack --silent --pack-destination "$out" "$folder"
