#include "http2.h"
#include "hpack.h"
#include "launcher.h"

static int conn;

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32 };
enum { FRAME_HEADER = 9, MAX_FRAME = 16384, MAX_BLOCK = 16384, MAX_REPLY = 512 };

struct frame {
	u32 n, stream;
	u8 kind, flags;
	u8 payload[MAX_FRAME];
};

void lost(void) { leave(EXIT_SETUP); }

static void write_all(const u8 *at, size_t n) {
	while (n > 0) {
		long done = sys(__NR_sendto, conn, at, n, NOSIGNAL, NULL, 0);
		if (done == -EINTR)
			continue;
		if (done <= 0)
			lost();
		at += done;
		n -= (size_t)done;
	}
}

// read_all returns false at the end of the connection, between frames.
static bool read_all(u8 *at, size_t n) {
	for (size_t have = 0; have < n;) {
		long got = sys(__NR_read, conn, at + have, n - have);
		if (got == -EINTR)
			continue;
		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	return true;
}

// A reply is frames under construction; what does not fit is a bug.
struct reply {
	u8 at[MAX_REPLY];
	size_t n;
};

static void put(struct reply *r, const void *bytes, size_t n) {
	if (n > sizeof r->at - r->n)
		lost();
	memcpy(r->at + r->n, bytes, n);
	r->n += n;
}

static void put_frame(struct reply *r, u8 kind, u8 flags, u32 stream, const void *payload, size_t n) {
	u8 header[FRAME_HEADER] = {
		(u8)(n >> 16), (u8)(n >> 8), (u8)n, kind, flags, (u8)(stream >> 24), (u8)(stream >> 16), (u8)(stream >> 8), (u8)stream,
	};
	put(r, header, sizeof header);
	put(r, payload, n);
}

// Fields that no index is kept of: a name of the static table and a new one.
#define STATUS_200 "\x88"
#define CONTENT_TYPE "\x0f\x10\x10" "application/grpc"
#define GRPC_STATUS "\x00\x0bgrpc-status"

static void put_head(struct reply *r, u32 stream) {
	put_frame(r, HEADERS, END_HEADERS, stream, STATUS_200 CONTENT_TYPE, sizeof STATUS_200 CONTENT_TYPE - 1);
}

// put_end ends a stream with a gRPC status below 100.
static void put_end(struct reply *r, u32 stream, unsigned status, bool head_sent) {
	char fields[64];
	size_t n = 0;
	if (!head_sent) {
		memcpy(fields, STATUS_200 CONTENT_TYPE, sizeof STATUS_200 CONTENT_TYPE - 1);
		n = sizeof STATUS_200 CONTENT_TYPE - 1;
	}
	memcpy(fields + n, GRPC_STATUS, sizeof GRPC_STATUS - 1);
	n += sizeof GRPC_STATUS - 1;
	struct line value = {.at = fields + n + 1, .size = sizeof fields - n - 1};
	add_number(&value, status, 10);
	fields[n] = (char)value.used;
	put_frame(r, HEADERS, END_HEADERS | END_STREAM, stream, fields, n + 1 + value.used);
}

static void put_message(struct reply *r, u32 stream, const void *message, size_t n) {
	u8 framed[128] = {0, 0, 0, 0, (u8)n}; // not compressed, four bytes of length
	if (n > sizeof framed - 5)
		lost();
	memcpy(framed + 5, message, n);
	put_frame(r, DATA, 0, stream, framed, n + 5);
}

static void send_reply(const struct reply *r) { write_all(r->at, r->n); }

void refuse_request(u32 stream, unsigned status) {
	struct reply r = {.n = 0};
	put_end(&r, stream, status, false);
	send_reply(&r);
}

void answer(u32 stream, const void *message, size_t n) {
	struct reply r = {.n = 0};
	put_head(&r, stream);
	put_message(&r, stream, message, n);
	put_end(&r, stream, 0, true);
	send_reply(&r);
}

// Streams whose request is not complete.
static struct {
	u32 stream;
	int method;
} opened[32];

static void open_stream(u32 stream, int m) {
	for (size_t i = 0; i < COUNT(opened); i++)
		if (opened[i].stream == 0) {
			opened[i].stream = stream;
			opened[i].method = m;
			return;
		}
	lost();
}

static void close_stream(u32 stream, bool serve) {
	for (size_t i = 0; i < COUNT(opened); i++)
		if (opened[i].stream == stream) {
			opened[i].stream = 0;
			if (serve)
				serve_method(opened[i].method, stream);
			return;
		}
}

static void on_headers(u32 stream, const u8 *block, size_t n, bool end) {
	static struct hpack table;
	static bool begun;
	char path[MAX_METHOD];
	if (!begun)
		hpack_init(&table);
	begun = true;
	if (stream == 0 || !hpack_path(&table, block, n, path))
		lost();
	int m = method_of(path);
	if (end || never_ends(m))
		serve_method(m, stream);
	else
		open_stream(stream, m);
}

// strip takes padding and priority off a frame's payload.
static const u8 *strip(const struct frame *f, size_t *n) {
	size_t padding = f->flags & PADDED ? 1 + (size_t)f->payload[0] : 0;
	size_t before = (f->flags & PADDED ? 1 : 0) + (f->kind == HEADERS && f->flags & WITH_PRIORITY ? 5 : 0);
	size_t after = padding > 0 ? padding - 1 : 0;
	if (f->n < before + after)
		lost();
	*n = f->n - before - after;
	return f->payload + before;
}

// on_block collects a header block, which may come in several frames.
static void on_block(const struct frame *f) {
	static u8 block[MAX_BLOCK];
	static size_t have;
	static u32 stream;
	static bool end;
	size_t n = f->n;
	const u8 *part = f->kind == HEADERS ? strip(f, &n) : f->payload;
	if (f->kind == HEADERS) {
		have = 0;
		stream = f->stream;
		end = (f->flags & END_STREAM) != 0;
	}
	if (f->stream != stream || n > sizeof block - have)
		lost();
	memcpy(block + have, part, n);
	have += n;
	if (f->flags & END_HEADERS)
		on_headers(stream, block, have, end);
}

// on_data takes what it does not look at, and makes room for more of it.
static void on_data(const struct frame *f) {
	u8 window[4] = {0, (u8)(f->n >> 16), (u8)(f->n >> 8), (u8)f->n};
	struct reply r = {.n = 0};
	if (f->stream == 0)
		lost();
	if (f->n > 0) {
		put_frame(&r, WINDOW_UPDATE, 0, 0, window, sizeof window);
		put_frame(&r, WINDOW_UPDATE, 0, f->stream, window, sizeof window);
		send_reply(&r);
	}
	if (f->flags & END_STREAM)
		close_stream(f->stream, true);
}

static void on_frame(const struct frame *f) {
	struct reply r = {.n = 0};
	switch (f->kind) {
	case DATA:
		on_data(f);
		return;
	case HEADERS:
	case CONTINUATION:
		on_block(f);
		return;
	case RST_STREAM:
		close_stream(f->stream, false);
		reset_request(f->stream);
		return;
	case SETTINGS:
		if (!(f->flags & ACK))
			put_frame(&r, SETTINGS, ACK, 0, "", 0);
		break;
	case PING:
		if (!(f->flags & ACK) && f->n == 8)
			put_frame(&r, PING, ACK, 0, f->payload, 8);
		break;
	default:
		return;
	}
	send_reply(&r);
}

void take_frame(void) {
	static struct frame f;
	u8 h[FRAME_HEADER];
	if (!read_all(h, sizeof h))
		leave(0); // the host is gone
	f.n = (u32)h[0] << 16 | (u32)h[1] << 8 | h[2];
	f.kind = h[3];
	f.flags = h[4];
	f.stream = ((u32)h[5] << 24 | (u32)h[6] << 16 | (u32)h[7] << 8 | h[8]) & 0x7fffffff;
	if (f.n > sizeof f.payload || !read_all(f.payload, f.n))
		lost();
	on_frame(&f);
}


void begin_connection(int fd) {
	u8 preface[24];
	struct reply settings = {.n = 0};
	conn = fd;
	put_frame(&settings, SETTINGS, 0, 0, "", 0);
	send_reply(&settings);
	if (!read_all(preface, sizeof preface))
		lost();
}
