#!/bin/sh
# What an image is made of, for images/cpu/Dockerfile and Apptainerfile alike, so that the two cannot drift apart. It runs as
# root in the image that is being built. Docker's has two stages, so that its layers lack what only the first one needs.
#
#   install.sh kit STAGED          first: make /opt/kit from the files that images/build staged; needs no network but Debian's
#                                  mirror. What only this needs is removed
#   install.sh system LIBRARIES    then, where /opt/kit is: the system's packages, the user and the mount points;
#                                  LIBRARIES says where the memory allocators come from: conda or debian
#   install.sh compiler NAME       the same: what torch.compile makes code for CPUs with: g++, or none
set -eu
umask 022 # the builder may have one that lets a group write

kit=/opt/kit
python=3.11 # what the wheels are for: Debian bookworm's

die() {
    echo "install.sh: $*" >&2
    exit 1
}

# As Docker's official image of Debian is set up, which the base need not be: translations are not fetched, and no file is
# flushed to the disk, as a build that is cut short is thrown away.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o Acquire::Languages=none update -q || die "apt-get update failed: is Debian's mirror reachable from the build?"
    apt-get -o Dpkg::Options::=--force-unsafe-io install -q -y --no-install-recommends "$@" || die "apt-get install failed"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/debconf/*-old
    rm -f /var/log/apt/* /var/log/dpkg.log /var/log/alternatives.log
}

make_kit() {
    staged=$1
    before=" $(dpkg-query --show --showformat '${Package} ')"
    apt_install python3 python3-venv
    found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ "$found" = $python ] || die "the base image's Python is $found, and the wheels are for $python: use debian:bookworm-slim"
    (cd "$staged/wheelhouse" && sha256sum --quiet --check SHA256SUMS) || die "a staged wheel differs from its SHA-256"

    # pip works from a folder of its own, so that the image has none: Debian's wheel of it, which takes seconds to install.
    tools=$(mktemp -d)
    python3 -m zipfile -e /usr/share/python-wheels/pip-*.whl "$tools"
    python3 -m venv --without-pip "$kit"
    pip() { PYTHONPATH=$tools python3 -m pip --python "$kit/bin/python" --disable-pip-version-check --no-cache-dir "$@"; }
    pip install --quiet --no-compile --no-index --find-links "$staged/wheelhouse" --require-hashes --no-deps \
        -r "$staged/requirements.lock" -r "$staged/torch.lock" || die "pip could not install the staged wheels"
    # They were installed without looking for what they need: that all of it was locked is seen now.
    pip check || die "the locks lack what a package needs"
    rm -rf "$tools"
    # python3-venv and what came with it
    extra=
    for package in $(dpkg-query --show --showformat '${Package} ' 'python3*-venv' 'python3-*-whl' python3-distutils \
        python3-lib2to3 ca-certificates openssl); do
        case $before in
        *" $package "*) ;;
        *) extra="$extra $package" ;;
        esac
    done
    # shellcheck disable=SC2086 # names of packages, without spaces
    apt-get purge -q -y $extra || die "apt-get purge failed"
    # pip would compile on one CPU, and the packages' tests too. A builder may have no shared memory, which several processes
    # need; and files for later Pythons can't be compiled.
    compile_all() { "$kit/bin/python" -m compileall -q -j "$1" -x '/tests?/|/py312_' "$kit/lib" >/dev/null; }
    compile_all 0 || compile_all 1 || true

    [ ! -d "$staged/conda" ] || cp -R "$staged/conda" "$kit/conda"
    cp "$staged/manifest.sha256" "$staged/base.json" "$kit/"
    # Kept in the image: the last stage runs them from here, and they say how it was made.
    mkdir -p "$kit/share/envkit"
    for script in install.sh providers.py libraries.py contents.py; do
        cp "$staged/$script" "$kit/share/envkit/"
    done
    for source in conda debian; do # the last stage has no Python yet when it needs to know
        "$kit/bin/python" "$kit/share/envkit/providers.py" --debian $source >"$kit/share/envkit/$source.packages"
    done
    chmod -R go+rX "$kit"
}

make_system() {
    case $1 in
    conda | debian) ;;
    *) die "LIBRARIES is '$1': conda or debian" ;;
    esac
    # shellcheck disable=SC2046 # names of packages, without spaces
    apt_install python3 numactl $(cat "$kit/share/envkit/$1.packages")
    useradd --no-log-init --uid 1000 --user-group --create-home --shell /bin/bash kit
    # Where the engines mount the code and the data. Apptainer without an overlay mounts only on what exists.
    mkdir -p /kit/envkit /data
    "$kit/bin/python" "$kit/share/envkit/providers.py" >"$kit/providers.json"
    "$kit/bin/python" "$kit/share/envkit/providers.py" --load || die "a library that the profiles preload does not load"
    write_contents
}

write_contents() { # Debian's mirror has other versions another day
    "$kit/bin/python" "$kit/share/envkit/contents.py" >"$kit/contents.json" || die "the packages of the image can't be listed"
}

make_compiler() {
    case $1 in
    none) ;;
    # Compiled code includes Python.h, and PyTorch calls openssl to hash the headers.
    g++) apt_install g++ libpython$python-dev openssl && write_contents ;;
    *) die "COMPILER is '$1': g++ or none" ;;
    esac
}

case ${1-} in
kit) make_kit "$2" ;;
system) make_system "$2" ;;
compiler) make_compiler "$2" ;;
*) die "usage: install.sh kit STAGED | install.sh system LIBRARIES | install.sh compiler NAME" ;;
esac
