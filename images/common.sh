# shellcheck shell=bash
# What the scripts in this folder share. It is sourced, not run, with the project's folder as the current one. The script sets
# `me`, its own name in messages, and before it calls pip also `venv`, whose pip runs, and `log`, the file that keeps all it says.

# Standard input without what a terminal would act upon: colours, other control characters (also as UTF-8), marks of direction
# and what takes no room. What is built, and an index of packages, prints what it likes.
plain() {
    LC_ALL=C sed -u -E 's/\x1b\[[0-9;]*m//g; s/[\x00-\x08\x0b-\x1f\x7f]//g
        s/\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf//g'
}

say() { echo "$me: $*" | plain; }
die() {
    echo "$me: $*" | plain >&2
    exit 2
}

is_engine() { [[ $1 =~ ^(docker|podman|apptainer|sqsh)$ ]]; }
read_image() { # read_image ENGINE IMAGE FILE...: print files of an image; a sqsh is read without Enroot
    case $1 in
    docker | podman) "$1" run --rm --network none --entrypoint cat "$2" "${@:3}" ;;
    apptainer) apptainer --silent exec --cleanenv --contain "$2" cat "${@:3}" ;;
    sqsh) unsquashfs -cat "$2" "${@:3}" ;;
    esac
}

digest() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

# What the virtual environment gets, and an image unless its variant says otherwise (read_variant).
torch=torch==2.13.0+cpu
torch_lock=images/cpu/torch.lock
torch_index=https://download.pytorch.org/whl/cpu

# read_variant NAME: set `variant`, `image_name`, `variant_base`, `libraries`, `compiler` (or none), `torch`, the locks `packages_lock`, `torch_lock`
# and (of conda's libraries) `conda_lock`, and the options `pins`, to what images/variants.yaml says of the variant NAME, or of the
# first one; and `wheels_mb` and `sif_mb` to what its wheels take on the way, and the making of a SIF, in MB.
read_variant() {
    local made_of key value
    made_of=$("$venv/bin/python" images/variants.py show "$1") || exit 2
    conda_lock='' pins=()
    while read -r key value; do
        if [[ $key == pin ]]; then
            pins+=(--pin "$value")
        else
            declare -g "$key=$value"
        fi
    done <<<"$made_of"
    wheels_mb=600 sif_mb=3000
    # A torch for GPUs is where pip is configured to look, or nowhere: that index has builds for CPUs.
    [[ $torch == *+cpu ]] || { torch_index='' wheels_mb=7000 sif_mb=20000; }
}

# make_venv PYTHON TAKES: make `venv` with this Python. TAKES says how much room it and what is put into it take, and what to do.
make_venv() {
    "$1" -m venv "$venv" >"$log" 2>&1 && return
    # It does not say so itself, and the log may be on the disk that is full. It takes some 20 MB, of which some are freed again.
    (($(df --output=avail --block-size=1M "$venv" | tail -n 1) > 30)) || die "no space left for $venv: $2"
    die "$1 -m venv failed: $(tail -n 1 "$log")"
}

# pip ARGUMENT...: run pip, show only what it fetches, and keep all it said in the log and, for the last call, in the log's .last.
# An index that others on the way can change is refused (images/addresses.py), before pip asks it for anything.
# By itself it waits a minute and a half for an index that never answers. What is configured, as for a slow mirror, counts.
pip() {
    local patience=() ended configured refused
    configured=$("$venv/bin/python" -m pip config list 2>/dev/null) || true
    refused=$("$venv/bin/python" images/addresses.py <<<"$configured") || die "pip config list: $refused"
    [[ $configured =~ (timeout|retries)= ]] || patience=(--timeout 15 --retries 2)
    echo "\$ pip $*" 2>/dev/null >>"$log"
    PYTHONUNBUFFERED=1 "$venv/bin/python" -m pip --disable-pip-version-check --no-input "${patience[@]}" "$@" --progress-bar off 2>&1 |
        tee "$log.last" 2>/dev/null | tee -a "$log" 2>/dev/null |
        sed -n -u -E 's/^ *(Downloading|Using cached) ([^ /]*\/)*([^ /]+) (\([^)]*\)).*/  \3 \4/p;
            s/^ *Processing ([^ ]*\/)?([^ /]+\.whl).*/  \2 (a file on this machine)/p;
            s/^Installing collected packages: .*/  unpacking/p' | plain
    ended=("${PIPESTATUS[@]}")
    log_is_cut=$((ended[1] || ended[2]))
    return "${ended[0]}"
}

# Why pip failed, in one line: it names a file of another hash on the next line, and that an index does not answer in a warning.
pip_error() {
    local said silent
    said=$(grep -m 1 '^ERROR' "$log.last" || tail -n 1 "$log.last")
    [[ $said != 'ERROR: Exception:' ]] || said=$(tail -n 1 "$log.last") # of a traceback
    silent=$(sed -n -E "s/.*HTTPS?ConnectionPool\(host='([^']*)', port=([0-9]+)\).*/\1:\2/p" "$log.last" | tail -n 1)
    case $said in
    *'DO NOT MATCH THE HASHES'*)
        said="$(sed -n -E 's/^ +([^ ]+) from ([^ ]+).*/the file of \1 that pip found (\2)/p' "$log.last" | head -n 1)"
        said+=" has the SHA-256 $(hash_found), which is not in the lock: name another package index, or remove the file"
        ;;
    *'No matching'* | *'Could not find a version'* | *HTTP*Pool*)
        [[ -z $silent ]] || said="$silent does not answer"
        said+=": name another package index (PIP_INDEX_URL; pip config list shows what is set)"
        ;;
    esac
    echo "$said"
}
# no_room [LOG]: whether a disk was full. It may be that of the log, which then does not say so.
log_is_cut=0
no_room() { ((log_is_cut)) || grep -qiE 'no space (is )?left|quota exceeded' "${1:-$log.last}"; }
hashes_differ() { grep -q 'DO NOT MATCH THE HASHES' "$log.last"; }
hash_found() { sed -n 's/^ *Got  *//p' "$log.last" | head -n 1; }

# pip_torch LOCK ARGUMENT...: run pip for the torch that LOCK names, first as pip is configured, then at torch's own index, if that
# has it. When it fails, hashes_differ says whether that was because of the hash of the wheel that it found, and no_room whether
# a disk was full.
pip_torch() {
    local lock=$1
    shift
    pip "$@" -r "$lock" && return
    [[ -n $torch_index ]] && ! hashes_differ && ! no_room && say "  pip gets no such wheel as it is configured; asking $torch_index" &&
        pip "$@" --index-url "$torch_index" --retries 1 --timeout 20 -r "$lock"
}
