#!/usr/bin/env bash
# Checks whether the code got slower: installs two commits side by side and times both in turn, with the model of NEW:
#     tools/slower.sh [OLD [NEW]]    # default: the tenth commit before the last one, and the last one
# Prints the median over 15 turns of the CPU seconds of NEW divided by those of OLD. Other programs still change it by a
# few per cent: run it on an idle machine, and again before you trust less than 10%.
# Needs an environment with xsent installed, for its dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
install() { # NAME COMMIT
    mkdir "$folder/$1-source"
    git archive "$2" | tar -x -C "$folder/$1-source"
    python -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/$1" "$folder/$1-source"
}
install old "${1:-HEAD~10}"
install new "${2:-HEAD}"

cat >"$folder/encode.py" <<'EOF_PYTHON'
import sys, time
from xsent import SentenceEncoder
encoder = SentenceEncoder(sys.argv[1], threads=1)
texts = [line.split("\t")[-1] for line in open(sys.argv[2], encoding="utf-8")]
encoder.encode(texts)  # warms up
began = time.process_time()
for text in texts:
    encoder.encode(text)
print(time.process_time() - began)
EOF_PYTHON
seconds() { # NAME
    PYTHONPATH=$folder/$1 python -P "$folder/encode.py" "$folder/new/xsent/builtin" bench/contrasts.tsv
}
for _ in {1..15}; do
    echo "$(seconds old) $(seconds new)"
done | python -c '
import sys, statistics
ratios = sorted(float(new) / float(old) for old, new in map(str.split, sys.stdin))
print(f"new / old: median {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}")'
