# A repository's life, with a clone over a pipe to another git process, and garbage collection in threads.
set -eu
export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
git init -q repository
cd repository
echo first >file
git add file
git commit -q -m first
git checkout -q -b branch
echo second >>file
git commit -q -a -m second
[ "$(git log --oneline | wc -l)" -eq 2 ]
git gc -q
cd ..
git clone -q --no-local repository copy
git -C copy diff --stat HEAD~1 | grep -q file
git -C copy fsck --no-progress
echo ok
