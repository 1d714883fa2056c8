
# All nodes say what they are before any begins to search, and have searched before any confirms.
each='cd "$1" && exec "$2" -m envkit.cli.slurm_node "$3" "$4" "$5" $6'
part() {
    on_nodes_left "$each" part "$project" "$python" "$folder" "$id" "$sha256" "$1"
}
for stage in --kind --search --confirm; do
    part "$stage"
    status=$?
    [[ $status -ne @{interrupted} ]] || break
done
