#include "hpack.h"

enum { STATIC_ENTRIES = 61, PATH = 4, INDEX_HTML = 5, EOS = 256, MAX_CODE = 30 };

static const u8 static_names[STATIC_ENTRIES] = {
	10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14, 16, 13, 12,
	6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
};

// The lengths of the codes determine the codes: they are canonical (RFC 7541,
// appendix B).
static const u8 code_lengths[257] = {
	13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
	6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
	13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
	15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
	20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
	22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
	26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
	20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
	30,
};

void hpack_init(struct hpack *h) {
	u32 n = 0;
	h->limit = HPACK_BYTES;
	for (u8 length = 1; length <= MAX_CODE; length++)
		for (u16 symbol = 0; symbol <= EOS; symbol++)
			if (code_lengths[symbol] == length)
				h->sorted[n++] = symbol;
}

struct block {
	const u8 *at, *end;
	bool bad;
};

// integer reads a number with a prefix of some bits (RFC 7541, 5.1). None that is
// sent here has more than 21 bits, but it may be padded with zeros.
static u32 integer(struct block *b, unsigned bits) {
	u32 mask = (1U << bits) - 1, v = *b->at++ & mask;
	if (v < mask)
		return v;
	for (unsigned shift = 0; shift < 63 && b->at < b->end; shift += 7) {
		u8 next = *b->at++;
		if (shift > 14 && (next & 0x7f) != 0)
			break;
		v += shift > 14 ? 0 : (u32)(next & 0x7f) << shift;
		if (next < 0x80)
			return v;
	}
	b->bad = true;
	return 0;
}

// A string is kept as far as it fits.
struct string {
	char at[MAX_METHOD];
	u32 length;
	bool zero; // a byte of it is 0
};

static void append(struct string *s, u8 byte) {
	if (s->length < MAX_METHOD)
		s->at[s->length] = (char)byte;
	s->length++;
	s->zero |= byte == 0;
}

// decode_huffman reads codes bit by bit. What is left at the end must be less
// than 8 bits, all 1 (RFC 7541, 5.2).
static bool decode_huffman(const struct hpack *h, const u8 *at, u32 n, struct string *s) {
	u32 code = 0, first = 0, index = 0, length = 0, left = 0;
	for (u32 bit = 0; bit < 8 * n; bit++) {
		if (length == 0)
			code = first = index = left = 0;
		u32 count = 0;
		length++;
		code = code << 1 | (at[bit / 8] >> (7 - bit % 8) & 1);
		left = left << 1 | 1;
		first <<= 1;
		while (index + count <= EOS && code_lengths[h->sorted[index + count]] == length)
			count++;
		if (code - first >= count) {
			first += count;
			index += count;
			continue;
		}
		u16 symbol = h->sorted[index + code - first];
		if (symbol == EOS)
			return false;
		append(s, (u8)symbol);
		length = 0;
	}
	return length == 0 || (length < 8 && code == left);
}

static struct string string(const struct hpack *h, struct block *b) {
	struct string s = {.length = 0};
	if (b->at == b->end) {
		b->bad = true;
		return s;
	}
	bool huffman = (*b->at & 0x80) != 0;
	u32 n = integer(b, 7);
	if (b->bad || n > (u64)(b->end - b->at)) {
		b->bad = true;
		return s;
	}
	if (huffman)
		b->bad = !decode_huffman(h, b->at, n, &s);
	for (u32 i = 0; i < n && !huffman; i++)
		append(&s, b->at[i]);
	b->at += n;
	return s;
}

static void evict(struct hpack *h, u32 limit) {
	while (h->size > limit) {
		h->count--;
		h->size -= h->entries[(h->first + h->count) % HPACK_ENTRIES].size;
	}
}

static void insert(struct hpack *h, const struct field *f, u32 size) {
	evict(h, size > h->limit ? 0 : h->limit - size);
	if (size > h->limit)
		return;
	h->first = (h->first + HPACK_ENTRIES - 1) % HPACK_ENTRIES;
	h->entries[h->first] = *f;
	h->count++;
	h->size += size;
}

// indexed finds an entry of the static or the dynamic table.
static struct field indexed(struct hpack *h, struct block *b, u32 index) {
	struct field f = {0};
	if (index == 0 || index > STATIC_ENTRIES + h->count) {
		b->bad = true;
		return f;
	}
	if (index > STATIC_ENTRIES)
		return h->entries[(h->first + index - STATIC_ENTRIES - 1) % HPACK_ENTRIES];
	f.name = static_names[index - 1];
	f.path = index == PATH || index == INDEX_HTML;
	if (f.path)
		memcpy(f.value, "/index.html", index == PATH ? 1 : 11);
	return f;
}

static bool is_path(const struct string *s) {
	static const char path[] = ":path";
	if (s->length != sizeof path - 1)
		return false;
	for (u32 i = 0; i < s->length; i++)
		if (s->at[i] != path[i])
			return false;
	return true;
}

// literal reads a field whose name is indexed or stands before its value.
static struct field literal(struct hpack *h, struct block *b, u32 index, bool keep) {
	struct field f;
	if (index > 0) {
		f = indexed(h, b, index);
	} else {
		struct string name = string(h, b);
		f = (struct field){.name = (u16)name.length, .path = is_path(&name)};
	}
	struct string value = b->bad ? (struct string){.length = 0} : string(h, b);
	memset(f.value, 0, sizeof f.value);
	if (f.path && value.length < sizeof f.value && !value.zero)
		memcpy(f.value, value.at, value.length);
	u32 size = f.name + value.length + 32;
	f.size = (u16)size;
	if (keep && !b->bad)
		insert(h, &f, size);
	return f;
}

static void resize(struct hpack *h, struct block *b, u32 limit) {
	if (limit > HPACK_BYTES)
		b->bad = true;
	else
		h->limit = limit;
	evict(h, h->limit);
}

bool hpack_path(struct hpack *h, const u8 *block, size_t n, char *path) {
	struct block b = {.at = block, .end = block + n};
	memset(path, 0, MAX_METHOD);
	while (b.at < b.end && !b.bad) {
		struct field f = {0};
		if (*b.at & 0x80)
			f = indexed(h, &b, integer(&b, 7));
		else if (*b.at & 0x40)
			f = literal(h, &b, integer(&b, 6), true);
		else if (*b.at & 0x20)
			resize(h, &b, integer(&b, 5));
		else
			f = literal(h, &b, integer(&b, 4), false);
		if (f.path && !b.bad)
			memcpy(path, f.value, MAX_METHOD);
	}
	return !b.bad;
}
