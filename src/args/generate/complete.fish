# Completion of pmdb in fish. Put it into ~/.config/fish/completions/pmdb.fish.
function __pmdb_complete
    set -l current (commandline -ct)
    pmdb --complete fish (commandline -opc) "$current" 2>/dev/null
end
complete -c pmdb -f -k -a '(__pmdb_complete)'
