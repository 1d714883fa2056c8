#!/bin/bash
# What profiles are worth on a machine with a GPU: records and reports of all parts, in one folder. Nothing is installed and no
# network is needed: the Python that is measured runs the runner too, and must have torch with CUDA, numpy, scipy, rich and PyYAML.
set -euo pipefail

usage="usage: benchmarks/gpu.sh [--python PATH] [--data DIR] [--budget TIME | --blocks N] [--processes N] [--ranks N] [--output DIR] [PART...]

parts, all unless some are named, each with its record and its reports in a folder of its name:
  look         the machine: driver, GPU, torch, and which profiles apply
  cnn          profiles for GPUs, on the small CNN
  segmentation the same on DeepLabV3
  input        threads of the host, on training that waits for its input
  ddp          ways of NCCL, on the small CNN on all GPUs at once (left out where there is one)
  all-reduce   the same on sums over all GPUs, with their bandwidths (left out where there is one)
  kernels      where a step's time goes, and for how much of it the GPU has nothing to do
  cpu          every profile for CPUs that applies, on all of the machine's cores
  epochs       whole epochs on the CPU, as the book's table has them

  --python     the interpreter to measure (python3)
  --data       Fashion-MNIST's folder (without one, synthetic data of its size, and reports say so)
  --budget     of each part that compares profiles (4m); a command that is cut off at 10 minutes has room for two
  --blocks     of each such part, however long they take
  --processes  fresh processes of each profile in kernels (4)
  --ranks      processes in ddp and all-reduce, one on each GPU (as many as torch sees GPUs)
  --output     the folder (results/gpu); what is done there is not done again"

die() {
    echo "benchmarks/gpu.sh: $*" >&2
    exit 2
}

python=python3 data=synthetic budget=4m blocks= processes=4 ranks= output=results/gpu parts=()
while (($#)); do
    case $1 in
    -h | --help) echo "$usage" && exit ;;
    --python | --data | --budget | --blocks | --processes | --ranks | --output)
        [[ -n ${2-} ]] || die "$1 needs a value (--help lists the options)"
        declare "${1#--}=$2" && shift 2 && continue
        ;;
    look | cnn | segmentation | input | ddp | all-reduce | kernels | cpu | epochs) parts+=("$1") && shift && continue ;;
    esac
    die "no argument '$1' (--help lists them)"
done
[[ $ranks =~ ^[0-9]*$ ]] || die "--ranks $ranks: not a number"
((${#parts[@]})) || parts=(look cnn segmentation input ddp all-reduce kernels cpu epochs)
[[ $data == synthetic ]] || data=$(realpath "$data")
[[ $python != */* ]] || python=$(realpath --no-symlinks "$python")
output=$(realpath --canonicalize-missing "$output")
cd "$(dirname "$(realpath "$0")")/.."
command -v "$python" >/dev/null || die "--python $python: no such executable"
"$python" -c 'import numpy, rich, scipy, torch, yaml' 2>/dev/null ||
    die "--python $python: lacks one of torch, numpy, scipy, rich and PyYAML: $("$python" -c 'import numpy, rich, scipy, torch, yaml' 2>&1 | tail -n 1)"
mkdir -p "$output"

envkit() { "$python" -m envkit "$@"; }

# The profiles that are for one GPU; those that need several say so and are left out.
gpu_profiles() { for file in envprofiles/gpu-*.yaml; do basename "$file" .yaml; done; }

# part NAME COMMAND...: run it, unless it was done. Its record can be gone on with where it was cut off, and is reported on however
# the run ended.
part() {
    local name=$1 folder=$output/$1 status=0
    shift
    [[ ! -e $folder/done ]] || return 0
    echo "== $name"
    if [[ -s $folder/record.jsonl ]]; then
        envkit bench --resume "$folder" || status=$?
    else
        envkit "$@" --output "$folder" || status=$?
    fi
    [[ -s $folder/record.jsonl ]] || return "$status"
    envkit report "$folder" --markdown "$folder/report.md" --details >"$folder/details.txt" || status=$?
    ((status)) || touch "$folder/done"
    return "$status"
}

look() {
    echo "== look"
    {
        nvidia-smi || echo "there is no nvidia-smi"
        "$python" -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())'
        envkit profiles
    } 2>&1 | tee "$output/look.txt"
}

# Whether there is an interface that nccl-socket leaves to NCCL: without one, training ends with an error.
has_network() {
    local folder
    for folder in /sys/class/net/*; do
        [[ ${folder##*/} != docker* && ${folder##*/} != lo* ]] || continue
        # The lowest bit: it is up. Others have no address to take.
        (($(cat "$folder/flags" 2>/dev/null || echo 0) & 1)) && return 0
    done
    return 1
}

# ranked NAME WORKLOAD...: profiles for NCCL on all GPUs.
ranked() {
    local name=$1 profiles=(nccl-ring nccl-no-p2p)
    shift
    if ((ranks < 2)); then
        echo "== $name: left out, as it takes two GPUs"
        return
    fi
    if has_network; then
        profiles+=(nccl-socket)
    else
        echo "== $name: without nccl-socket, as there is no network"
    fi
    part "$name" bench "${profiles[@]}" "${trained[@]}" --device cuda --nproc "$ranks" --workload "$@"
}

: "${ranks:=$("$python" -c 'import torch; print(torch.cuda.device_count())')}"
length=(--budget "$budget")
[[ -z $blocks ]] || length=(--blocks "$blocks")
trained=(--python "$python" "${length[@]}")
read -r -a gpu <<<"$(gpu_profiles | tr '\n' ' ')"
failed=0
for one in "${parts[@]}"; do
    case $one in
    look) look ;;
    cnn) part cnn matrix "${gpu[@]}" "${trained[@]}" --device cuda --workload cnn --data "$data" ;;
    segmentation) part segmentation matrix "${gpu[@]}" "${trained[@]}" --device cuda --workload segmentation ;;
    input) part input matrix gpu-host physical-cores gnu-omp intel-omp "${trained[@]}" --device cuda --workload loader ;;
    ddp) ranked ddp cnn --data "$data" ;;
    all-reduce) ranked all-reduce all-reduce --scale 16 ;;
    kernels)
        echo "== kernels"
        envkit breakdown baseline gpu-one-queue --python "$python" --device cuda --processes "$processes" --data "$data" |
            tee "$output/kernels.txt"
        ;;
    cpu) part cpu matrix "${trained[@]}" --workload cnn --data "$data" ;;
    epochs) part epochs bench gnu-omp glibc-retain --python "$python" --full --data "$data" ;;
    esac || { failed=1 && echo "benchmarks/gpu.sh: $one did not come to its end" >&2; }
done
exit $failed
