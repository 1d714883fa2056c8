
on_each_node 'cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5"' node \
    "$project" "$python" "$folder" "$id" "$sha256"
status=$?
