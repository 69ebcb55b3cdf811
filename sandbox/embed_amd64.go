package sandbox

import _ "embed" // the launcher

//go:embed launcher_linux_amd64
var launcherImage []byte
