package config

import (
	"os"
	"path/filepath"
	"slices"
)

// configVariable names the file in the environment.
const configVariable = "TOOLHOST_CONFIG"

// fileName is that of the file in a config folder, systemFile the machine's.
const (
	fileName   = "toolhost/toolhost.yaml"
	systemFile = "/etc/toolhost/toolhost.yaml"
)

// Lookup finds the file to load: the given path if there is one, else
// $TOOLHOST_CONFIG, the user's ($XDG_CONFIG_HOME or ~/.config), or the machine's
// in /etc. Of the last two, one that does not exist is passed over. It never
// looks in the working directory. name is what messages call the file; both are
// empty without a file, or where /dev/null is given to say so.
func (m Machine) Lookup(given string) (name, path string) {
	if variable, _ := m.lookup(configVariable); given == "" {
		given = variable
	}
	switch given {
	case "":
	case os.DevNull:
		return "", ""
	default:
		return given, m.absolute(given)
	}
	for _, candidate := range m.candidates(m.userFile()) {
		// One that cannot be looked at is not passed over: it may forbid things.
		if _, err := m.stat(candidate); !notThere(err) {
			return candidate, candidate
		}
	}
	return "", ""
}

// Standard are the files that Lookup finds without being told, also without the
// user's variables, and in place of those that do not exist the folders in which they
// would be.
func (m Machine) Standard() (files, folders []string) {
	for _, file := range m.candidates(m.userFile(), m.homeFile()) {
		if _, err := m.stat(file); notThere(err) {
			folders = append(folders, filepath.Dir(file))
		} else {
			files = append(files, file)
		}
	}
	return files, folders
}

// candidates are the user's files, where there is a place for them, and the machine's.
func (m Machine) candidates(users ...string) []string {
	return slices.Compact(slices.DeleteFunc(append(users, systemFile), func(path string) bool { return path == "" }))
}

func (m Machine) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.Dir, path)
	}
	return filepath.Clean(path)
}

func (m Machine) userFile() string {
	// A relative one is to be ignored, says the XDG Base Directory Specification.
	if dir, _ := m.lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, fileName)
	}
	return m.homeFile()
}

func (m Machine) homeFile() string {
	if m.Home == "" {
		return ""
	}
	return filepath.Join(m.Home, ".config", fileName)
}
