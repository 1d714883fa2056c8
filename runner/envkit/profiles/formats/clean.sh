envkit_unset() { echo "unset, because it could change the outcome: $1" >&2; unset "$1"; }
for envkit_name in @NAMES@; do
    case $envkit_name in
    @KEPT@) ;;
    @SPEED@) envkit_unset "$envkit_name" ;;
    @SWITCHED@) ;;
    *) envkit_unset "$envkit_name" ;;
    esac
done
