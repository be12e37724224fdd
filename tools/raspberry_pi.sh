#!/usr/bin/env bash
# Installs the last commit in an emulated Debian arm64 system, like the owner of a Raspberry Pi 4, and runs `xsent doctor`,
# `xsent verify` and the tests of the runtime that need no training. It also prints the sizes. Speed and memory under
# emulation are meaningless.
#
# Run it as root on a Debian-like x86 machine:
#     apt-get install debootstrap qemu-user-static binfmt-support
#     tools/raspberry_pi.sh FOLDER
# FOLDER/root is the system, which the next run reuses. Nothing outside FOLDER changes, and nothing remains mounted.
set -euo pipefail

[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
for command in debootstrap unshare git python3; do
    command -v "$command" >/dev/null || { echo "$command is missing: see the top of $0" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "run it as root" >&2; exit 1; }
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || { echo "cannot run arm64 programs: run update-binfmts --enable" >&2; exit 1; }

mkdir -p "$1"
folder=$(realpath "$1") root=$(realpath "$1")/root
cd "$(dirname "$0")/.."
TESTS="builtin files mining similarity terminal threads vectors"

# The CPU of a Raspberry Pi 4, which lacks dot products of 8-bit numbers.
export QEMU_CPU=cortex-a72
cat >"$folder/cpuinfo" <<EOF
processor	: 0
Features	: fp asimd evtstrm crc32 cpuid
CPU implementer	: 0x41
CPU part	: 0xd08
Model		: Raspberry Pi 4 Model B, emulated
EOF

# Runs a command in the emulated system, without this machine's environment variables.
inside() {
    unshare --mount --propagation private bash -euc '
        root=$1 cpuinfo=$2; shift 2
        mount -t proc proc "$root/proc"
        mount --bind "$cpuinfo" "$root/proc/cpuinfo"
        mount -t sysfs -o ro sysfs "$root/sys"
        exec chroot "$root" /usr/bin/env -i PATH=/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 \
            QEMU_CPU="$QEMU_CPU" PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"' - "$root" "$folder/cpuinfo" "$@"
}

megabytes() { inside du --summarize --block-size=1MB "$1" | cut -f1; }

step() { echo; echo "== $*"; }

if [ ! -e "$root/complete" ]; then
    step "a Debian system for arm64 (once)"
    debootstrap --arch=arm64 --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" >"$folder/debootstrap.log"
    touch "$root/complete"
fi
# The names, certificates and registries of this machine.
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    [ ! -e "$file" ] || cp --dereference "$file" "$root$file"
done

step "the wheel"
rm -rf "$folder/source" "$root/wheel" "$root/download" "$root/venv" "$root/work"
mkdir -p "$folder/source" "$root/work"
git archive HEAD | tar --extract --directory "$folder/source"
python3 -m pip wheel --quiet --no-deps --wheel-dir "$root/wheel" "$folder/source"
cp -r "$folder/source/tests" "$folder/source/pyproject.toml" "$root/work"
ls -l "$root/wheel" | awk 'NR > 1 { printf "%s %.1f MB\n", $NF, $5 / 1e6 }'

step "pip install xsent"
inside python3 -m venv /venv
before=$(megabytes /venv)
inside sh -c "pip download --quiet --dest /download /wheel/xsent-*.whl && pip install --quiet --no-index --find-links /download xsent"
ls -l "$root/download" | awk 'NR > 1 { printf "%7.1f MB  %s\n", $5 / 1e6, $NF }'
echo "download $(megabytes /download) MB, installed $(($(megabytes /venv) - before)) MB, including the model"

step "xsent doctor"
inside xsent doctor || echo "exit $?"
for backend in onnx numpy; do
    step "xsent verify --backend $backend"
    inside xsent verify --backend "$backend"
done
step "similarity"
inside xsent similarity "The cat sleeps." "Le chat dort."

step "tests"
inside pip install --quiet pytest hypothesis protobuf
inside sh -c "cd /work && python -m pytest -p no:cacheprovider $(printf 'tests/runtime/test_%s.py ' $TESTS)"
