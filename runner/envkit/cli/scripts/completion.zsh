autoload -U +X compinit bashcompinit && compinit && bashcompinit
