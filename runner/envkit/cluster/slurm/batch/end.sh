
# A job that another one takes the place of is given some time to end, and is not requeued if it has ended by then.
if [[ $status -eq @{interrupted} ]] && scontrol show job "$SLURM_JOB_ID" | grep -q 'PreemptTime=[0-9]'; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
