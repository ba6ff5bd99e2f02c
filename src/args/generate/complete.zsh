#compdef pmdb
# Completion of pmdb in zsh. Put it into a folder of $fpath under the name _pmdb.

_pmdb() {
    local -a processes offers
    local process= line i
    processes=(demo help self ${(f)"$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u)"})
    case $words[CURRENT - 1] in
    -p | --pid) compadd -a processes; return ;;
    -x | --command | --report) _files; return ;;
    -color | --color) compadd auto always never; return ;;
    -ex | --ex) return ;;
    esac
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
        -p | --pid) process=$words[++i] ;;
        -x | --command | -ex | --ex | --report | -color | --color) ((++i)) ;;
        -*) ;;
        *)
            [[ -n $process ]] || process=$words[i++]
            break
            ;;
        esac
    done
    if [[ -z $process ]]; then
        case $words[CURRENT] in
        -*) compadd -- @OPTIONS@ ;;
        *) compadd -a processes ;;
        esac
        return
    fi
    case $process in
    help) compadd @TOPICS@; return ;;
    demo) process= ;;
    esac
    line="$words[i,CURRENT]"
    offers=(${(f)"$(pmdb -nx ${process:+-p} $process -batch -ex "complete \"$line\"" 2>/dev/null)"})
    compadd -- ${offers##* }
}

_pmdb "$@"
