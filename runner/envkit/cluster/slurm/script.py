"""The batch script: plain text, made of settings alone, so that it can be read before it is submitted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from envkit.cluster.slurm import node_preflight
from envkit.cluster.slurm.settings import FILE_NAME, Settings
from envkit.common.errors import INTERRUPTED

NAME = "batch.sh"
# So long before the time limit a node is told to end, and has recorded what it measured when Slurm ends it. Slurm looks
# about every half minute, and tells up to a minute early.
GRACE_S = 60
SHORTEST_GRACE_S = 10

HEAD = """\
#!/bin/bash
{options}\
# Written by envkit, to measure {what}.
# {each} node measures what {settings} says. A job that is requeued goes on where it was.
# To go on with the submission, run
#   {command}
set -u
# Either would have srun give its task these CPUs of a node, and no others.
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_THREADS_PER_CORE
folder={folder}
python={python}
project={project}
id={id}
sha256={sha256}

# One task on each of so many nodes, with all of its CPUs. A node that fails leaves the others alone.
on_nodes() {{
    srun --nodes="$1" --ntasks="$1" --ntasks-per-node=1 --cpu-bind=none --export=ALL \\
        --wait=0 --kill-on-bad-exit=0 --no-kill "${{@:2}}"
}}
on_each_node() {{
    on_nodes "$SLURM_JOB_NUM_NODES" bash -c "$@"
}}
# A node that has died is no longer among the job's: a step that asks for it would wait for ever, and the step in which
# it died may still hold the others.
on_nodes_left() {{
    on_nodes "$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %D)" --overlap bash -c "$@"
}}
# Steps that overlap have all that the job has: the runner's own has the first node, and its workers' have all of them.
on_first_node() {{
    on_nodes 1 --nodelist="$SLURMD_NODENAME" --overlap bash -c "$@"
}}

# Only the owner may read what the job prints, whatever the umask that Slurm gave the file.
chmod go= "$folder/slurm-$SLURM_JOB_ID.out" 2>/dev/null
"""
# A node's clock is held against this node's, before and after: the answer came in between, however long it took.
ROLL_CALL = """
# The roll call: each node says what time it has, and what it does not find.
(umask 077 && : >"$folder/{file}-$SLURM_JOB_ID")
{{
    echo "before $SLURMD_NODENAME $(date +%s.%N)"
    on_each_node '
        missing=nothing
        if ! grep -qsF "$2" "$1/{settings}"; then missing=folder
        elif [[ ! -x $3 ]]; then missing=python
        elif [[ ! -r $4/envkit/cli/slurm_node.py ]]; then missing=project
        fi
        echo "answer $SLURMD_NODENAME $(date +%s.%N) $missing"
    ' roll-call "$folder" "$id" "$python" "$project"
    echo "after $SLURMD_NODENAME $(date +%s.%N)"
}} >"$folder/{file}-$SLURM_JOB_ID" || exit 1
"""
EACH = """
on_each_node 'cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5"' node \\
    "$project" "$python" "$folder" "$id" "$sha256"
status=$?
"""
# All nodes say what they are before any begins to search, and have searched before any confirms.
TUNING = """
each='cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5" $6'
part() {{
    on_nodes_left "$each" part "$project" "$python" "$folder" "$id" "$sha256" "$1"
}}
for stage in --kind --search --confirm; do
    part "$stage"
    status=$?
    [[ $status -ne {interrupted} ]] || break
done
"""
JOINT = """
on_each_node 'cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5" --check' check \\
    "$project" "$python" "$folder" "$id" "$sha256"
status=$?

# The runner, which starts workers on all of them.
if [[ $status -eq 0 ]]; then
    on_first_node 'cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5"' node \\
        "$project" "$python" "$folder" "$id" "$sha256"
    status=$?
fi
"""
END = """
# A job that another one takes the place of is given some time to end, and is not requeued if it has ended by then.
if [[ $status -eq {interrupted} ]] && scontrol show job "$SLURM_JOB_ID" | grep -q 'PreemptTime=[0-9]'; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""


def render(
    settings: Settings, folder: Path, name: str, nodes: int, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()
) -> str:
    """A script for ``nodes`` nodes, those of ``wanted`` among them and none of ``unwanted``; a fleet's are all wanted.

    ``name`` is the job's. What each option means: https://slurm.schedmd.com/sbatch.html
    """
    command = shlex.join(["envkit", settings.by, f"--resume={folder}"]).replace("\n", "\n#   ")
    head = HEAD.format(
        options=_options(settings, folder, name, nodes, wanted, unwanted), what=_what(settings),
        each="The first" if settings.joint else "Each", settings=FILE_NAME, command=command,
        folder=shlex.quote(str(folder)), python=shlex.quote(settings.python), project=shlex.quote(settings.project),
        id=settings.id, sha256=settings.sha256,
    )  # fmt: skip
    roll_call = ROLL_CALL.format(settings=FILE_NAME, file=node_preflight.NAME)
    work = TUNING.format(interrupted=INTERRUPTED) if settings.tuning else JOINT if settings.joint else EACH
    return head + roll_call + work + END.format(interrupted=INTERRUPTED)


def _options(
    settings: Settings, folder: Path, name: str, nodes: int, wanted: Sequence[str], unwanted: Sequence[str]
) -> str:
    """Return the lines in which sbatch reads its options."""
    lines = [
        f"--job-name={name}",
        *(["--nodes=1"] if settings.fleet else _one_job(nodes, wanted, unwanted)),
        "--ntasks-per-node=1",
        "--exclusive",  # other jobs on a node would be measured too
        "--mem=0",  # all of a node's memory
        *([f"--time={settings.minutes}"] if settings.minutes else []),
        *([f"--partition={settings.partition}"] if settings.partition else []),
        "--chdir=/",
        f"--output={str(folder).replace('%', '%%')}/slurm-%j.out",
        "--open-mode=append",  # a job that is requeued writes to it again
        "--requeue",
        "--no-kill",  # the other nodes go on where one dies
        f"--signal=URG@{grace_s(settings.minutes)}",
        *(f"--{option}" for option in settings.options),
    ]
    places = f"# Submitted for each of these nodes, with --nodelist: {','.join(wanted)}\n" if settings.fleet else ""
    return "".join(f"#SBATCH {_quoted(line)}\n" for line in lines) + places


def _what(settings: Settings) -> str:
    """What is measured, for people who read the script."""
    asked = settings.specification
    if settings.tuning:
        return f"what is best for {asked.workload or 'a command'}, for {settings.tuning.budget_s:g} s of each node"
    profiles = settings.profiles or dict.fromkeys(arm.profile for arm in asked.arms)
    length = f"{asked.blocks} blocks" if asked.blocks else f"for {asked.budget_s:g} s"
    how_long = "full trainings" if asked.epochs else length
    return " ".join(f"{', '.join(profiles)} on {asked.workload}, {how_long}".split())


def _one_job(nodes: int, wanted: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    return [
        f"--nodes={nodes}",
        *([f"--nodelist={','.join(wanted)}"] if wanted else []),
        *([f"--exclude={','.join(unwanted)}"] if unwanted else []),
    ]


def grace_s(minutes: int | None) -> int:
    """How long before its time limit a job is told to end, in seconds: of a short limit a sixth."""
    return GRACE_S if minutes is None else max(SHORTEST_GRACE_S, min(GRACE_S, minutes * 10))


def _quoted(option: str) -> str:
    """An option as sbatch reads it from a script: quotes around what holds blanks, as a shell would have them."""
    name, equals, value = option.partition("=")
    return f"{name}{equals}{shlex.quote(value)}" if equals else option
