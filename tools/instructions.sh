#!/usr/bin/env bash
# Counts the instructions of opening the built-in bundle, and of encoding a sentence at each of its depths, by valgrind.
# Unlike times, the counts hardly depend on the machine or on what else it does: valgrind shows every x86-64 CPU as one
# with AVX2 and without VNNI. Prints JSON for github-action-benchmark. Needs valgrind and an environment with xsent.
set -euo pipefail
cd "$(dirname "$0")/.."

count() { # DEPTH SENTENCES: millions of instructions, from the start of Python
    PYTHONHASHSEED=0 valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null python -c '
import sys
from xsent import SentenceEncoder
encoder = SentenceEncoder(layers=int(sys.argv[1]), threads=1)
for _ in range(int(sys.argv[2])):
    encoder.encode("The committee will meet again on Tuesday to discuss the new budget for schools.")
' "$1" "$2" 2>&1 | awk '
        /I +refs/ { gsub(",", "", $NF); found = $NF / 1e6; next }
        { told = told $0 "\n" }
        END { if (!found) { printf "%s", told >"/dev/stderr"; exit 1 } print found }'
}
entry() { # NAME MILLIONS
    printf '  {"name": "%s", "unit": "million instructions", "value": %s}' "$1" "$2"
}

depths=$(python -c 'from xsent.bundle import Bundle, builtin_path; print(*Bundle.open(builtin_path()).depths)')
echo "["
for depth in $depths; do
    one=$(count "$depth" 1)
    sentences=$((depth ? 200 : 2000)) # without layers they take so little that the start's noise would count
    many=$(count "$depth" $((sentences + 1)))
    entry "a sentence at depth $depth" "$(awk "BEGIN { print ($many - $one) / $sentences }")"
    echo ","
done
entry "Python, opening and the first sentence" "$one"
printf '\n]\n'
