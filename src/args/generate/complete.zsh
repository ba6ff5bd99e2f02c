#compdef pmdb
# Completion of pmdb in zsh. Put it into a directory of $fpath under the name _pmdb.
local -a offers offered shown end
offers=("${(@f)$(pmdb --complete zsh "$QIPREFIX" "${(@Q)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
compset -p ${offers[1]:-0}
for mark in + -; do
    offered=(${${(M)offers:#$mark*}#?})
    shown=(${offered#*$'\t'})
    [[ $mark = + ]] && end=() || end=(-S '')
    compadd -U -i "$IPREFIX" -V pmdb$mark "$end[@]" -l -d shown -- ${offered%%$'\t'*}
done
