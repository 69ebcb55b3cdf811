#include "textflag.h"

// CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM
#define cloneThread 0x50f00
#define mntDetach 2
#define sysClone 56
#define sysExit 60
#define sysUmount2 166

// func detach(stack uintptr, path *byte, result *int64) int64
TEXT ·detach(SB), NOSPLIT, $0-32
	MOVQ stack+0(FP), SI
	MOVQ path+8(FP), R12
	MOVQ result+16(FP), R13
	MOVQ $cloneThread, DI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $sysClone, AX
	SYSCALL
	TESTQ AX, AX
	JZ thread
	MOVQ AX, ret+24(FP)
	RET

thread:
	MOVQ R12, DI
	MOVL $mntDetach, SI
	MOVL $sysUmount2, AX
	SYSCALL
	MOVQ AX, (R13)
	XORL DI, DI
	MOVL $sysExit, AX
	SYSCALL
	INT $3
