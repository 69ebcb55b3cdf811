// Package journal keeps every event of every turn, in the order in which they were shown, in one SQLite database below
// a state directory.
//
// An owner ([Open]) appends; there is one at a time, held by a lock. Readers ([OpenReader]) replay, list and follow,
// beside a living owner or without one, in any process of the same user.
//
// What Append has returned for is committed: it survives SIGKILL of the owner at any moment. A power cut may cost the
// last second (SQLite's synchronous=NORMAL in WAL mode: the database stays consistent). An event must be appended
// before anybody is shown it.
//
// The journal never parses or changes an event's JSON: replay gives the same bytes. It therefore cannot redact either.
// Secrets must not reach it: taking them out is the caller's duty, before Append.
//
// Files, all of mode 0600:
//
//	journal.db, -wal, -shm      the database
//	journal.lock                locked by the owner, and holding its pid; empty after a clean end
//	journal.db.corrupt-<time>   a database that could not be read, moved aside by Open and never deleted
package journal
