# shellcheck shell=bash
# What the engine scripts beside this file share. It is sourced, not run.

export DEBIAN_FRONTEND=noninteractive

# Bootstrapped systems are kept here between runs; delete the folder to start afresh.
# shellcheck disable=SC2034 # for the scripts that source this
cache=${KIT_CI_CACHE:-/var/cache/kit-ci}

# What the Dockerfile and the Apptainerfile build from, and the same as a tar for those that read one.
# shellcheck disable=SC2034
image=debian:bookworm-slim
base_tar=$cache/debian-bookworm-slim.tar

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

need_root() {
    [[ $EUID -eq 0 ]] || die "must run as root: it installs packages and mounts file systems"
}

# apt_install PACKAGE...: install what is missing. The package lists are refreshed only when they turn out to be absent or
# too old, which keeps a second run quick. The lock timeout lets two scripts run at the same time. No file is flushed to the
# disk: a machine that goes down meanwhile is made anew.
apt_install() {
    local package missing=()
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    local install=(apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-unsafe-io install -qq -y
        --no-install-recommends "${missing[@]}")
    if ! "${install[@]}" </dev/null; then
        apt-get -o DPkg::Lock::Timeout=300 update -qq
        "${install[@]}" </dev/null
    fi
}

# The address of the Debian mirror that this machine's apt is set up to use.
debian_mirror() {
    # shellcheck disable=SC2016 # $(...) is apt's own format syntax
    apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' |
        awk -F'|' -v codename="$(. /etc/os-release && echo "$VERSION_CODENAME")" \
            '$1 == "Debian" && $2 == "main" && $3 == codename { print $4; exit }'
}

# bootstrap_tar SUITE TAR [OPTION...]: make TAR, a minimal system of a Debian SUITE, unless it is there already. It gets its
# name only when it is complete, so a run that was cut off leaves nothing that a later one would trust.
bootstrap_tar() {
    local suite=$1 tar=$2 mirror
    shift 2
    [[ ! -e $tar ]] || return 0
    apt_install mmdebstrap
    mirror=$(debian_mirror)
    if [[ -z $mirror ]]; then
        apt-get -o DPkg::Lock::Timeout=300 update -qq
        mirror=$(debian_mirror)
    fi
    [[ -n $mirror ]] || die "apt on this machine names no Debian mirror to bootstrap $suite from"
    mkdir -p "${tar%/*}"
    # A mirror may be a snapshot, whose release files have expired.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "$@" "$suite" "$tar.$$.tmp.tar" "$mirror"
    mv "$tar.$$.tmp.tar" "$tar"
}

# base_tar: make $base_tar, which holds what a pulled $image would: a minimal system without manual pages and translations.
base_tar() {
    bootstrap_tar bookworm "$base_tar" \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright'
}
