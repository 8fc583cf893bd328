#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# git builds, packs and reads a repository under libreap-malloc as without it.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need git

# Everything that could differ between two runs is pinned.
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@example.org
GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000'
export GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL
export GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_DATE

grow() {
    i=0
    while [ $i -lt 60 ]; do
        seq $((i * $1)) $((i * $1 + 400)) >"file$i.txt"
        i=$((i + 1))
    done
    git add .
    git commit -q -m "files grown by $1"
}

work() {
    git init -q -b main repository && cd repository || return
    for step in 1 2 3 5 8 13; do grow $step || return; done
    git checkout -q -b side HEAD~3
    seq 1000 >other.txt && git add other.txt && git commit -q -m side
    git checkout -q main && git merge -q --no-edit side || return
    git repack -q -a -d -f --threads=4 && git fsck --strict --no-progress || return
    git log --stat --graph
    git log -p | git hash-object --stdin
    git blame file7.txt | git hash-object --stdin
    git archive HEAD | git hash-object --stdin
    git clone -q --no-local . ../copy && git -C ../copy fsck --no-progress && git -C ../copy rev-parse HEAD
}
compare_work
