package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sealedLauncher is the launcher in a memfd that nobody can change any more,
// made once per process and kept for its life.
var sealedLauncher = sync.OnceValues(func() (*os.File, error) {
	return sealed("toolhost-launcher", launcherImage)
})

const allSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// sealed copies image to a sealed, executable memfd. MFD_EXEC is Linux 6.3;
// older kernels refuse the flag and need none.
func sealed(name string, image []byte) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, flags)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("cannot make an executable memfd: %w; type as root: sysctl -w vm.memfd_noexec=1", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a memfd for the launcher: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(image); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot fill the launcher's memfd: %w", err), file.Close())
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, allSeals); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot seal the launcher's memfd: %w", err), file.Close())
	}
	return file, nil
}

// textFile puts bytes into a memfd that is not for execution.
func textFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a memfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(content); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot fill a memfd: %w", err), file.Close())
	}
	return file, nil
}
