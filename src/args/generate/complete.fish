# Completion of pmdb in fish. Put it into ~/.config/fish/completions/pmdb.fish.

function __pmdb_processes
    printf '%s\n' demo help self
    cat /proc/[0-9]*/comm 2>/dev/null | sort -u
end

function __pmdb_has_process
    set -l words (commandline -opc)
    test (count $words) -gt 1; and not string match -q -- '-*' $words[2]
end

function __pmdb_command
    set -l words (commandline -opc)
    set -l line (string join ' ' -- $words[3..-1] (commandline -ct))
    set -l process -p $words[2]
    contains -- $words[2] demo help; and set process
    test $words[2] = help; and set line "help $line"
    pmdb -nx $process -batch -ex "complete \"$line\"" 2>/dev/null | string replace -r '.* ' ''
end

complete -c pmdb -f
complete -c pmdb -n 'not __pmdb_has_process' -a '(__pmdb_processes)'
complete -c pmdb -n __pmdb_has_process -a '(__pmdb_command)'
