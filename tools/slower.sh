#!/usr/bin/env bash
# Is the code slower than it was? Measures the code of an old commit and of the last one with `xsent-bench slower`, on the
# same machine and model, and exits 1 where something got slower by more than a tenth:
#     tools/slower.sh [OLD]        # the tenth commit before the last, unless named
# Needs an environment with xsent[bench]. A history too short for the commit, or an old code that cannot be measured, is
# said, and is a failure only where OLD was named.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=${1:-HEAD~10} named=$#
nothing() { # REASON
    echo "nothing to compare with: $1" >&2
    exit "$named"
}
git rev-parse --quiet --verify "$commit^{commit}" >/dev/null || nothing "no commit $commit here"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
install() { # NAME COMMIT
    mkdir "$folder/$1-source" &&
        git archive "$2" | tar -x -C "$folder/$1-source" &&
        python -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/$1" "$folder/$1-source"
}
echo "slower than $(git rev-parse --short "$commit")?"
install old "$commit" && PYTHONPATH=$folder/old python -P bench/xsent_bench/slower.py encode runtime/xsent/builtin 20 ||
    nothing "$commit cannot be measured"
install new HEAD
xsent-bench slower "$folder/old" "$folder/new" --model runtime/xsent/builtin
