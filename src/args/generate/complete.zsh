#compdef pmdb
# Completion of pmdb in zsh. Put it into a directory of $fpath under the name _pmdb.

_pmdb_processes() {
    local -a processes
    processes=(${(f)"$(pmdb --no-shell -nx -batch -ex 'complete "attach "' 2>/dev/null)"})
    compadd -- demo help ${processes#attach }
}

_pmdb() {
    local -a offers
    local before=$words[CURRENT-1] process= line i
    case $before in
    -p | -pid | --pid) _pmdb_processes; return ;;
    -x | -command | --command | -report | --report) _files; return ;;
    -color | --color) compadd -- auto always never; return ;;
    -generate | --generate) compadd -- @GENERATED@; return ;;
    -ex | --ex) return ;;
    esac
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
        -p | -pid | --pid) process=$words[++i] ;;
        @TAKE_VALUES@) ((++i)) ;;
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
        *) _pmdb_processes ;;
        esac
        return
    fi
    case $process in
    help) compadd -- @TOPICS@; return ;;
    demo) process= ;;
    esac
    line="$words[i,CURRENT]"
    line=${line//\\/\\\\}
    line=${line//\"/\\\"}
    offers=(${(f)"$(pmdb --no-shell -nx ${process:+-p} $process -batch -ex "complete \"$line\"" 2>/dev/null)"})
    compadd -- ${offers##* }
}

_pmdb "$@"
