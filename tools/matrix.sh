#!/usr/bin/env bash
# Tests the versions of docs/results/matrix.md and prints its rows. For each Python it takes the oldest and then the newest
# dependencies that pyproject.toml allows and that have wheels. In a fresh environment it installs the last commit and runs
# `uv pip check`, `xsent verify`, `xsent similarity` and the tests. It needs uv. The logs are in FOLDER.
#     tools/matrix.sh FOLDER PYTHON...                     # the runtime; a PYTHON is 3.11, 3.14 or a path
#     EXTRAS="train export" TESTS="tests/train/test_training.py tests/export/test_export.py" tools/matrix.sh FOLDER 3.11
#     EXTRAS="apps cluster map mcp" TOOLS="torch openai httpx httpx2" TESTS="tests/apps/test_serve.py ..." tools/matrix.sh ...
# TOOLS are additional packages for these tests. Most tests of the runtime need FOLDER/mini, which any run with torch creates:
#     XSENT_MINI_BUNDLE=FOLDER/mini pytest tests/runtime/test_tokenizer.py
set -euo pipefail
mkdir -p "$1"
folder=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1 VIRTUAL_ENV=$folder/venv PATH="$folder/venv/bin:$PATH"
what=${EXTRAS:-runtime}
[[ $what == *export* ]] || export XSENT_MINI_BUNDLE=$folder/mini  # with export, the tests make it
rm -rf "$folder/source" && mkdir "$folder/source" && git archive HEAD | tar --extract --directory "$folder/source"

# The last line of the output is the result of the tests, or the failure. Warnings are not errors here, because they differ by
# version. Tests that train tokenizers need protobuf.
try() { # lowest-direct | highest
    uv venv --quiet --clear --python "$python" "$folder/venv" &&
        uv pip compile --quiet --only-binary :all: --resolution "$1" --no-header --annotation-style line \
            ${EXTRAS:+$(printf -- '--extra=%s ' $EXTRAS)} --output-file "$folder/lock" pyproject.toml &&
        uv pip install --quiet --requirements "$folder/lock" && uv pip install --quiet --no-deps "$folder/source" &&
        uv pip install --quiet pytest hypothesis protobuf ${TOOLS:-} && uv pip check &&
        xsent verify && xsent similarity "Where is the station?" "Où est la gare ?" &&
        python -m pytest -p no:cacheprovider -W default ${TESTS:-tests}
}

failed=0
for python; do
    for resolution in lowest-direct highest; do
        log=$folder/$(basename "$python")-${what// /-}-$resolution.log
        echo "$log" >&2
        rm -f "$folder/lock"
        ended=
        try "$resolution" &>"$log" || { ended="**failed**: " && failed=1; }
        ended+=$(tail -n 1 "$log")
        # The packages that pyproject.toml names.
        versions=$(sed -n '/pyproject.toml/{s/ *[;#].*//; s/==/ /; p; }' "$folder/lock" | paste -sd, - | sed 's/,/, /g')
        echo "| $("$folder/venv/bin/python" -c 'import platform; print(platform.python_version(), platform.machine())') |" \
            "$what, ${resolution%-direct} | $versions | ${ended% in *} |"
    done
done
exit "$failed"
