package sandbox

import (
	"os"
	"strings"
)

const userNamespaceHint = "allow user namespaces with their capabilities; see toolhost doctor"

// userNamespaceRemedy names what on this machine stands against user
// namespaces.
func userNamespaceRemedy() string {
	for _, s := range []struct{ file, bad, remedy string }{
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor restricts user namespaces (Ubuntu 23.10 and newer): install the profile deploy/apparmor/toolhost, or set sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "set sysctl kernel.unprivileged_userns_clone=1 (Debian's older kernels)"},
		{"/proc/sys/user/max_user_namespaces", "0", "set sysctl user.max_user_namespaces=15000"},
	} {
		if text, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(text)) == s.bad {
			return s.remedy
		}
	}
	if _, err := os.Stat("/.dockerenv"); err == nil {
		return "let the container make namespaces: docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	}
	return "allow user namespaces, or run as root"
}
