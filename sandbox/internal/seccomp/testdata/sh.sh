# What shells do all day: pipes, subshells, background jobs, signals, here-documents, temporary files.
set -eu
[ "$(printf 'b\na\n' | sort | head -n 1)" = a ]
(exit 7) || [ $? = 7 ]
trap 'caught=yes' USR1
kill -USR1 $$
[ "$caught" = yes ]
cat <<end >file
text
end
chmod 600 file
mv file other
grep -q text other
sleep 60 &
kill $!
wait $! || [ $? -gt 128 ]
ulimit -n 64
nice -n 5 true
find . -name other -exec cp {} copy \;
tar cf archive.tar copy
tar xf archive.tar
rm copy other archive.tar
echo ok
