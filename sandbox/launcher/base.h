// System calls, bytes and text without a C library. A system call's wrapper
// returns what the kernel returns: an error is -errno.
#ifndef BASE_H
#define BASE_H

#include <asm/unistd.h>
#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

#if defined(__x86_64__)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f) {
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f) {
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

#else
#error "unknown architecture"
#endif

#define SYS_ARGS(n, a, b, c, d, e, f, ...) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
// sys(number, arguments...) takes pointers and numbers alike; missing ones are 0.
#define sys(...) SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

// spawn is clone(2) with a stack of the child's own, which ends at stack and on
// which run(arg) must never return (start.c).
long spawn(u64 flags, void *stack, void (*run)(void *), void *arg);

__attribute__((noreturn)) static inline void leave(int status) {
	for (;;)
		sys(__NR_exit_group, status);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

// The compiler may emit calls of these two.
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int value, size_t n);

// wipe is memset to 0 that is not optimized away.
static inline void wipe(void *p, size_t n) {
	memset(p, 0, n);
	__asm__ volatile("" : : "r"(p) : "memory");
}

static inline size_t length(const char *s) {
	size_t n = 0;
	while (s[n] != 0)
		n++;
	return n;
}

static inline bool equal(const char *a, const char *b) {
	while (*a != 0 && *a == *b)
		a++, b++;
	return *a == *b;
}

static inline u64 min64(u64 a, u64 b) { return a < b ? a : b; }

// A line is text under construction in an array of fixed size. It is always
// terminated; what does not fit is cut, and cut says so.
struct line {
	char *at;
	size_t size, used;
	bool cut;
};

#define LINE(array) ((struct line){.at = (array), .size = sizeof(array)})

void add(struct line *l, const char *s);
void add_number(struct line *l, u64 v, unsigned base); // base 8 or 10
// add_path adds before, a number and after.
void add_path(struct line *l, const char *before, u64 number, const char *after);

// put_number writes v as 8 bytes, least significant first, as package wire does.
static inline void put_number(u8 *to, u64 v) {
	for (int i = 0; i < 8; i++)
		to[i] = (u8)(v >> (8 * i));
}

static inline u64 get_number(const u8 *from) {
	u64 v = 0;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | from[i];
	return v;
}

#endif
