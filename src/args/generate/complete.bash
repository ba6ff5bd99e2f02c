# Completion of pmdb in bash. Put it where bash-completion looks, for one user:
#   pmdb --generate complete-bash | install -D -m 644 /dev/stdin ~/.local/share/bash-completion/completions/pmdb

# Offers the lines that begin with the word. They contain names of processes and symbols, which are somebody else's:
# `compgen -W` would run what is in them, and so would the shell if they were inserted unquoted.
_pmdb_offer() {
    local offer quoted
    while IFS= read -r offer; do
        printf -v quoted %q "$offer"
        case $offer in
        '') ;;
        "$word"* | \'"$word"*) COMPREPLY+=("$quoted") ;;
        *) [[ $quoted != "$word"* ]] || COMPREPLY+=("$quoted") ;;
        esac
    done <<<"$1"
}

_pmdb_processes() {
    printf 'demo\nhelp\n'
    pmdb --no-shell -nx -batch -ex 'complete "attach "' 2>/dev/null | sed "s/^attach //; s/^'\(.*\)'\$/\1/"
}

_pmdb() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} process= i
    COMPREPLY=()
    case $before in
    -p | -pid | --pid) _pmdb_offer "$(_pmdb_processes)"; return ;;
    -x | -command | --command | -report | --report) COMPREPLY=($(compgen -f -- "$word")); return ;;
    -color | --color) _pmdb_offer $'auto\nalways\nnever'; return ;;
    -generate | --generate) _pmdb_offer "$(printf '%s\n' @GENERATED@)"; return ;;
    -ex | --ex) return ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -p | -pid | --pid) process=${COMP_WORDS[++i]} ;;
        @TAKE_VALUES@) ((++i)) ;;
        -*) ;;
        *)
            [ -n "$process" ] || process=${COMP_WORDS[i++]}
            break
            ;;
        esac
    done
    if [ -z "$process" ]; then
        case $word in
        -*) _pmdb_offer "$(printf '%s\n' @OPTIONS@)" ;;
        *) _pmdb_offer "$(_pmdb_processes)" ;;
        esac
        return
    fi
    case $process in
    help) _pmdb_offer "$(printf '%s\n' @TOPICS@)"; return ;;
    demo) process= ;;
    esac
    # pmdb itself knows what may follow; a quoted text keeps the blank at its end.
    local line="${COMP_WORDS[*]:i:COMP_CWORD-i} "
    [ $i -lt $COMP_CWORD ] || line=
    line=$line$word
    line=${line//\\/\\\\}
    line=${line//\"/\\\"}
    local offers
    offers=$(pmdb --no-shell -nx ${process:+-p "$process"} -batch -ex "complete \"$line\"" 2>/dev/null)
    offers=$(printf '%s\n' "$offers" | while read -r offer; do printf '%s\n' "${offer##* }"; done)
    _pmdb_offer "$offers"
}

complete -F _pmdb pmdb
