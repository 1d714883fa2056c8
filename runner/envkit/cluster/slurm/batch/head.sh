#!/bin/bash
@{options}# Written by envkit, to @{verb} @{what}.
# Nodes read in @{settings} what to measure. A job that is requeued goes on where it was.
# To go on with the submission, run
#   @{command}
set -u
# Either would have srun give its task these CPUs of a node, and no others.
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_THREADS_PER_CORE
folder=@{folder}
python=@{python}
project=@{project}
id=@{id}
sha256=@{sha256}

# One task on each of so many nodes, with all of its CPUs. A node that fails leaves the others alone.
on_nodes() {
    srun --nodes="$1" --ntasks="$1" --ntasks-per-node=1 --cpu-bind=none --export=ALL \
        --wait=0 --kill-on-bad-exit=0 --no-kill "${@:2}"
}
on_each_node() {
    on_nodes "$SLURM_JOB_NUM_NODES" bash -c "$@"
}
# A node that has died is no longer among the job's: a step that asks for it would wait for ever, and the step in which
# it died may still hold the others.
on_nodes_left() {
    on_nodes "$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %D)" --overlap bash -c "$@"
}
# Steps that overlap have all that the job has: the runner's own has the first node, and its workers' have all of them.
on_first_node() {
    on_nodes 1 --nodelist="$SLURMD_NODENAME" --overlap bash -c "$@"
}

# Only the owner may read what the job prints, whatever the umask that Slurm gave the file.
chmod go= "$folder/slurm-$SLURM_JOB_ID.out" 2>/dev/null

# The roll call: each node says what time it has, and what it does not find. Its clock is compared with this node's
# before and after: the answer came in between, however long it took.
(umask 077 && : >"$folder/@{roll_call}-$SLURM_JOB_ID")
{
    echo "before $SLURMD_NODENAME $(date +%s.%N)"
    on_each_node '
        missing=nothing
        if ! grep -qsF "$2" "$1/@{settings}"; then missing=folder
        elif [[ ! -x $3 ]]; then missing=python
        elif [[ ! -r $4/envkit/cli/slurm_node.py ]]; then missing=project
        fi
        echo "answer $SLURMD_NODENAME $(date +%s.%N) $missing"
    ' roll-call "$folder" "$id" "$python" "$project"
    echo "after $SLURMD_NODENAME $(date +%s.%N)"
} >"$folder/@{roll_call}-$SLURM_JOB_ID" || exit 1
