# Completion of pmdb in bash. Put it where bash-completion looks, for one user:
#   pmdb --generate complete-bash | install -D -m 644 /dev/stdin ~/.local/share/bash-completion/completions/pmdb
_pmdb() {
    mapfile -t COMPREPLY < <(pmdb --complete bash "$COMP_TYPE" "$2" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    # The only offer: bash closes its quote and adds a blank, if the word is complete.
    if [[ ${#COMPREPLY[@]} -eq 1 && $COMPREPLY = *' ' ]]; then
        COMPREPLY=("${COMPREPLY% }")
    else
        compopt -o nospace
    fi
}
complete -o nosort -F _pmdb pmdb
