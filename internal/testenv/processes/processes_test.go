package processes

import (
	"crypto/rand"
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestFound(t *testing.T) {
	mark := rand.Text()
	command := exec.Command("sleep", "60")
	command.Args[0] = "sleep-" + mark
	command.Env = []string{"FIRST=1", "MARK=" + mark}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	only := []int{command.Process.Pid}
	for _, test := range []struct {
		name        string
		found, want []int
	}{
		{"an entry", WithEnvironment("MARK=" + mark), only},
		{"a part of an entry", WithEnvironment(mark), nil},
		{"an argument's part", WithArguments(mark), only},
		{"parts", WithArguments(mark, "60"), only},
		{"parts of which one is not there", WithArguments(mark, "61"), nil},
		{"all", Of("sleep-"+mark, "60"), only},
		{"not all", Of("sleep-" + mark), nil},
		{"children", Children(os.Getpid()), only},
	} {
		if !slices.Equal(test.found, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.found, test.want)
		}
	}
	if IsZygote(only[0]) || Zygote() != 0 {
		t.Error("sleep was taken for a zygote")
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	if left := WithEnvironment("MARK=" + mark); left != nil {
		t.Errorf("%v have ended", left)
	}
}

func TestZygoteIsFoundByItsName(t *testing.T) {
	command := exec.Command("sleep", "60")
	command.Args[0] = "toolhost-zygote"
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if found := Zygote(); found != command.Process.Pid {
		t.Errorf("%d, want %d", found, command.Process.Pid)
	}
	_ = command.Process.Kill()
	_ = command.Wait()
}
