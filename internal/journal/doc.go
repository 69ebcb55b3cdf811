// Package journal keeps every event of every turn, in the order in which they were shown, in one SQLite database below
// a state directory.
//
// An owner ([Open]) appends; there is one at a time, held by a lock. Readers ([OpenReader]) replay, list and follow,
// beside a living owner or without one, in any process of the same user.
//
// What Append has returned for survives SIGKILL of the owner at any moment. A power cut may cost what the kernel has not
// written to the disk by then, by Linux's defaults half a minute: no call waits for the disk, and SQLite does
// (synchronous=NORMAL in WAL mode) only as the log is written to the file, after 256 commits or 9 MiB. The database stays
// consistent. An event must be appended before anybody is shown it.
//
// With Options.Ahead a small Append returns as soon as a file beside the database has it, the redo log. The owner brings
// that to the database within 25 ms, in order, with what else has come until then; at once where a reader of its process
// waits. A reader waits, two seconds at most, for what was appended before it reads; where the owner has died, a reader
// that may write, or the next owner, does the rest.
//
// Damage does not pass for a record. What was closed is compared with its checksums when it is opened, the rest of what
// takes longer than a moment behind that; each event and result has one of its own, which readers check. A damaged
// database is moved aside, and never written to.
//
// The journal never parses or changes an event's JSON: replay gives the same bytes. It therefore cannot redact either.
// Secrets must not reach it: taking them out is the caller's duty, before Append.
//
// Files, all of mode 0600:
//
//	journal.db, -wal, -shm      the database
//	journal.redo                what was appended ahead and the database may lack; gone after a clean end
//	journal.lock                locked by the owner, and holding its pid; empty after a clean end
//	journal.sums                checksums over the database as it was closed; gone while there is an owner
//	journal.damaged             why the owner found the database damaged, until that is moved aside or replaced
//	journal.db.corrupt-<time>   a database that could not be read, moved aside by Open and never deleted; redo logs, too
package journal
