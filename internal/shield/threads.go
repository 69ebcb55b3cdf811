package shield

import (
	"runtime"
	"sync"
)

// Go's runtime wants 7 to 11 threads for a plugin on so many processors.
const (
	processors   = 2
	readyThreads = 8
)

// Prepare readies this process for a child that takes every task that the two
// may have (pids.max): the runtime gets its threads now, and keeps them. It
// would end the process if it wanted one then. Count this process's tasks
// only later.
func Prepare() {
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), processors))
	var there, kept sync.WaitGroup
	there.Add(readyThreads)
	kept.Add(1)
	for range readyThreads {
		go func() {
			runtime.LockOSThread() // a thread for this goroutine alone
			defer runtime.UnlockOSThread()
			there.Done()
			kept.Wait()
		}()
	}
	there.Wait()
	kept.Done()
}
