for envkit_name in @NAMES@; do
    case $envkit_name in
    @KEPT@) ;;
    *) echo "unset, because it could change the outcome: $envkit_name" >&2; unset "$envkit_name" ;;
    esac
done
