#include "textflag.h"

// CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM
#define cloneThread 0x50f00
#define mntDetach 2
#define sysClone 220
#define sysExit 93
#define sysUmount2 39

// func detach(stack uintptr, path *byte, result *int64) int64
TEXT ·detach(SB), NOSPLIT, $0-32
	MOVD stack+0(FP), R1
	MOVD path+8(FP), R9
	MOVD result+16(FP), R10
	MOVD $cloneThread, R0
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $sysClone, R8
	SVC
	CBZ R0, thread
	MOVD R0, ret+24(FP)
	RET

thread:
	MOVD R9, R0
	MOVD $mntDetach, R1
	MOVD $sysUmount2, R8
	SVC
	STLR R0, (R10)
	MOVD ZR, R0
	MOVD $sysExit, R8
	SVC
	BRK
