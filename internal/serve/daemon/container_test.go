package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const containerFiles = "../../../deploy/container/"

// volumesOf are those of the first container of a file for Kubernetes.
func volumesOf(t *testing.T, file string) (mounts, volumes []map[string]any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var pod struct {
		Spec struct {
			Containers []struct {
				VolumeMounts []map[string]any `yaml:"volumeMounts"`
			}
			Volumes []map[string]any
		}
	}
	if err := yaml.NewDecoder(f).Decode(&pod); err != nil {
		t.Fatal(err)
	}
	return pod.Spec.Containers[0].VolumeMounts, pod.Spec.Volumes
}

// Kubernetes makes the folders of volumes writable by all. The daemon refuses a configuration
// in such a folder, and to keep its journal or store there.
func TestVolumesOfKubernetes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(containerFiles + "entrypoint")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Beside the folders nothing of this machine is the script's to change.
	script := strings.NewReplacer("/sys/fs/cgroup", dir, "exec toolhost", "exec true", "/var/", dir+"/var/").Replace(string(raw))
	mounts, volumes := volumesOf(t, containerFiles+"kubernetes.yaml")
	var folders []string
	for _, mount := range mounts {
		path := mount["mountPath"].(string)
		of := func(kind string) bool {
			for _, v := range volumes {
				if v["name"] == mount["name"] && v[kind] != nil {
					return true
				}
			}
			return false
		}
		switch {
		case of("configMap") && mount["subPath"] == nil:
			t.Errorf("the configuration is in the folder of a map, %s: mount its file", path)
		case of("emptyDir") && path != "/run/toolhost":
			folder := filepath.Join(dir, path)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			folders = append(folders, folder)
		}
	}
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o022 != 0 {
			t.Errorf("others may write to %s (mode %#o)", folder, info.Mode().Perm())
		}
	}
	if len(folders) != 2 {
		t.Errorf("the volumes %v, want those of journal and store", folders)
	}
}
