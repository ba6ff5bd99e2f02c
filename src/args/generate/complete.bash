# Completion of pmdb in bash. Put it where bash-completion looks, for one user:
#   pmdb --generate complete-bash | install -D -m 644 /dev/stdin ~/.local/share/bash-completion/completions/pmdb
_pmdb() {
    mapfile -t COMPREPLY < <(pmdb --complete bash "$COMP_TYPE" "$2" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    # The only word: bash closes its quote and adds a blank, if it is complete.
    case ${#COMPREPLY[@]}$COMPREPLY in
    1*' ') COMPREPLY=("${COMPREPLY% }") ;;
    *) compopt -o nospace ;;
    esac
}
complete -o nosort -F _pmdb pmdb
