package sandbox

import _ "embed" // the launcher

//go:embed launcher_linux_arm64
var launcherImage []byte
