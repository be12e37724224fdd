#!/usr/bin/env bash
# Counts the instructions to open the built-in bundle, and to encode a sentence at each of its depths, with valgrind.
# Unlike times, the counts hardly depend on the machine or its load: valgrind emulates an x86-64 CPU with AVX2 and
# without VNNI. Prints JSON for github-action-benchmark. Needs valgrind and an environment with xsent.
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
        { output = output $0 "\n" }
        END { if (!found) { printf "%s", output >"/dev/stderr"; exit 1 } print found }'
}
entry() { # NAME MILLIONS
    printf '  {"name": "%s", "unit": "million instructions", "value": %s}' "$1" "$2"
}

depths=$(python -c 'from xsent.bundle import Bundle, builtin_path; print(*Bundle.open(builtin_path()).depths)')
echo "["
for depth in $depths; do
    one=$(count "$depth" 1)
    sentences=$((depth ? 200 : 2000)) # without layers they take so little that noise from the start would count
    many=$(count "$depth" $((sentences + 1)))
    entry "a sentence at depth $depth" "$(awk "BEGIN { print ($many - $one) / $sentences }")"
    echo ","
done
entry "Python, opening and the first sentence" "$one"
printf '\n]\n'
