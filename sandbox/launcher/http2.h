// The server of one HTTP/2 connection (RFC 9113) that speaks gRPC. Requests are
// known by their methods, their messages are not looked at, and the answers are
// small.
#ifndef HTTP2_H
#define HTTP2_H

#include "base.h"

// The connection's end, and anything unexpected on it, ends the process.
void begin_connection(int fd);
void take_frame(void);
__attribute__((noreturn)) void lost(void);

// An answer is one message and the status OK, or no message and another status.
void answer(u32 stream, const void *message, size_t n);
void refuse_request(u32 stream, unsigned status);

// What the server's user has to say. A request begins when all of it is there,
// but for methods whose requests never end.
int method_of(const char *path);
bool never_ends(int method);
void serve_method(int method, u32 stream);
void reset_request(u32 stream);

#endif
