# Complete envkit in bash. Put this into ~/.local/share/bash-completion/completions/envkit
_envkit() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words index
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
        return
    fi
    for ((index = 2; index < COMP_CWORD; index++)); do
        if [[ ${COMP_WORDS[index]} == -- ]]; then
            COMPREPLY=($(compgen -c -f -- "$word"))
            return
        fi
    done
    case $command in
        @NESTED@) ((COMP_CWORD > 2)) && command="$command ${COMP_WORDS[2]}" ;;
    esac
    case "$command $before" in
@VALUES@
        *)
            if [[ $word == -* ]]; then
                case $command in
@OPTIONS@
                esac
            else
                case $command in
@ARGUMENTS@
                esac
                compopt -o default 2>/dev/null
            fi ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _envkit envkit
