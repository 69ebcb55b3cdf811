// Header compression of HTTP/2 (RFC 7541), as far as a server needs it that
// looks at :path alone: of other fields it knows how long they are.
#ifndef HPACK_H
#define HPACK_H

#include "base.h"

enum { HPACK_BYTES = 4096, HPACK_ENTRIES = HPACK_BYTES / 32, MAX_METHOD = 64 };

struct field {
	u16 name; // length, without that of the value
	u16 size; // of the entry (RFC 7541, 4.1)
	bool path;
	char value[MAX_METHOD]; // of a path; empty where it does not fit or has a byte 0 (RFC 9113, 8.2.1)
};

struct hpack {
	struct field entries[HPACK_ENTRIES];
	u32 first, count; // a ring; the newest is entries[first]
	u32 size, limit;
	u16 sorted[257]; // symbols of the Huffman code, by the length of their codes
};

void hpack_init(struct hpack *h);

// hpack_path reads a whole header block, and copies :path, or nothing, to path,
// which has MAX_METHOD bytes. It returns false for what is malformed: then the
// connection is lost.
bool hpack_path(struct hpack *h, const u8 *block, size_t n, char *path);

#endif
