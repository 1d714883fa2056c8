
on_each_node 'cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5" --check' check \
    "$project" "$python" "$folder" "$id" "$sha256"
status=$?

# The runner, on the first node, which starts workers on all of them.
if [[ $status -eq 0 ]]; then
    on_first_node 'cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5"' node \
        "$project" "$python" "$folder" "$id" "$sha256"
    status=$?
fi
