// What a program needs that has no C library: its first instructions, a clone
// with a stack of its own, and what the compiler calls by itself.
#include "launcher.h"
#include <linux/auxvec.h>

#if defined(__x86_64__)

// The kernel enters here with the arguments on the stack (System V ABI).
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n\thlt\n");

__asm__(".globl spawn\nspawn:\n\tsub $16, %rsi\n\tmov %rdx, (%rsi)\n\tmov %rcx, 8(%rsi)\n\txor %edx, %edx\n\txor %r10d, %r10d\n\txor %r8d, %r8d\n\t"
	"mov $56, %eax\n\tsyscall\n\ttest %rax, %rax\n\tjz 1f\n\tret\n"
	"1:\txor %ebp, %ebp\n\tpop %rax\n\tpop %rdi\n\tcall *%rax\n\thlt\n");

#elif defined(__aarch64__)

__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl begin\n\tbrk #1\n");

__asm__(".globl spawn\nspawn:\n\tmov x9, x2\n\tmov x10, x3\n\tmov x2, xzr\n\tmov x3, xzr\n\tmov x4, xzr\n\tmov x8, #220\n\tsvc #0\n\tcbz x0, 1f\n\tret\n"
	"1:\tmov x29, #0\n\tmov x30, #0\n\tmov x0, x10\n\tblr x9\n\tbrk #1\n");

#endif

// The compiler compares this with what it has put on the stack.
uintptr_t __stack_chk_guard;

__attribute__((noreturn)) void __stack_chk_fail(void);

void __stack_chk_fail(void) {
	for (;;)
		__builtin_trap();
}

// begin is called with the stack as the kernel has made it: argc, argv, NULL,
// envp, NULL, auxv. It has no canary, for it fills the guard.
__attribute__((noreturn, used, no_stack_protector)) void begin(long *stack);

void begin(long *stack) {
	int argc = (int)stack[0];
	char **argv = (char **)(stack + 1), **envp = argv + argc + 1, **end = envp;
	while (*end != NULL)
		end++;
	for (unsigned long *aux = (unsigned long *)(end + 1); aux[0] != AT_NULL; aux += 2)
		if (aux[0] == AT_RANDOM)
			memcpy(&__stack_chk_guard, (const void *)aux[1], sizeof __stack_chk_guard);
	__stack_chk_guard &= ~(uintptr_t)0xff; // a string that runs over ends before it
#if defined(__aarch64__)
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(&__stack_chk_guard)); // where the compiler looks for it
#endif
	leave(program(argc, argv, envp));
}

// Loops that the compiler must not turn into calls of the functions themselves
// (-fno-tree-loop-distribute-patterns).

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
	u8 *t = to;
	const u8 *f = from;
	while (n-- > 0)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int value, size_t n) {
	u8 *t = to;
	while (n-- > 0)
		*t++ = (u8)value;
	return to;
}
