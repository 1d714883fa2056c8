# shellcheck shell=bash
# What the scripts in this folder share. It is sourced, not run, with the project's folder as the current one. The script sets
# `me`, its own name in messages, and before it calls pip also `venv`, whose pip runs, and `log`, the file that keeps all it says.

say() { echo "$me: $*"; }
die() {
    echo "$me: $*" >&2
    exit 2
}

digest() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

torch=torch==2.13.0+cpu
torch_lock=images/cpu/torch.lock
torch_index=https://download.pytorch.org/whl/cpu

# pip ARGUMENT...: run pip, show only what it fetches, and keep all it said in the log and, for the last call, in the log's .last.
pip() {
    echo "\$ pip $*" >>"$log"
    PYTHONUNBUFFERED=1 "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@" --progress-bar off 2>&1 |
        tee "$log.last" | tee -a "$log" |
        sed -n -u -E 's/^ *(Downloading|Using cached) ([^ /]*\/)*([^ /]+) (\([^)]*\)).*/  \3 \4/p;
            s/^ *Processing ([^ ]*\/)?([^ /]+\.whl).*/  \2 (a file on this machine)/p;
            s/^Installing collected packages: .*/  unpacking/p'
}
pip_error() { grep -m 1 '^ERROR' "$log.last" || tail -n 1 "$log.last"; }
hashes_differ() { grep -q 'DO NOT MATCH THE HASHES' "$log.last"; }
hash_found() { sed -n 's/^ *Got  *//p' "$log.last" | head -n 1; }

# pip_torch LOCK ARGUMENT...: run pip for the torch that LOCK names, first as pip is configured, then at torch's own index. When
# it fails, hashes_differ says whether that was because of the hash of the wheel that it found.
pip_torch() {
    local lock=$1
    shift
    pip "$@" -r "$lock" && return
    ! hashes_differ && say "  pip finds no such wheel as it is configured; asking $torch_index" &&
        pip "$@" --index-url "$torch_index" --retries 1 --timeout 20 -r "$lock"
}
