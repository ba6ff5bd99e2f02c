# Completion of pmdb in fish. Put it into ~/.config/fish/completions/pmdb.fish.

function __pmdb_processes
    printf '%s\n' demo help
    pmdb --no-shell -nx -batch -ex 'complete "attach "' 2>/dev/null | string replace 'attach ' ''
end

# The process and the words after it; nothing while there is no process.
function __pmdb_words
    set -l words (commandline -opc)
    set -l process
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case -p -pid --pid
                set process $words[2]
                set -e words[1]
            case @TAKE_VALUES@
                set -e words[1]
            case '-*'
            case '*'
                break
        end
        set -q words[1]; and set -e words[1]
    end
    printf '%s\n' $process $words
end

function __pmdb_has_process
    set -l words (__pmdb_words)
    test -n "$words[1]"
end

function __pmdb_command
    set -l words (__pmdb_words)
    set -l process $words[1]
    set -e words[1]
    set -l line (string join ' ' -- $words (commandline -ct) | string replace -a '\\' '\\\\' | string replace -a '"' '\\"')
    switch $process
        case help
            set process
            set line "help $line"
        case demo
            set process
        case '*'
            set process -p $process
    end
    pmdb --no-shell -nx $process -batch -ex "complete \"$line\"" 2>/dev/null | string replace -r '.* ' ''
end

complete -c pmdb -f
complete -c pmdb -n 'not __pmdb_has_process' -a '(__pmdb_processes)'
complete -c pmdb -n __pmdb_has_process -a '(__pmdb_command)'
