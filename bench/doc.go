// Package bench measures what toolhost costs beside what it is built on, the
// two in turn in one run, since machines are noisy: a ratio of medians holds
// where an absolute time does not. make bench runs it; docs/benchmarks.md holds
// a table.
package bench
