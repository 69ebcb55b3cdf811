package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSecretsAreTheToolsAlone(t *testing.T) {
	w := enter(t)
	binary := strings.Repeat("\x00\xff", MaxSecretBytes/2)
	p := w.plan(Policy{}, Task{Secrets: []Secret{{"token", []byte("s3cret")}, {"binary", []byte(binary)}, {"empty", nil}}})
	w.wantDo(p,
		"read:"+SecretsDir+"/token", "s3cret", "stat:"+SecretsDir+"/token", "1000 1000 0400", "list:"+SecretsDir, "binary empty token",
		"length:"+SecretsDir+"/binary", "65536", "length:"+SecretsDir+"/empty", "0",
		"append:"+SecretsDir+"/token", "error EACCES", "rm:"+SecretsDir+"/token", "error EROFS", "make:"+SecretsDir+"/more", "error EROFS",
		"chmod:"+SecretsDir+"/token", "error EROFS")
	w.wantDo(w.plan(Policy{}, Task{}), "list:"+SecretsDir, "error ENOENT")
}

// The most that is possible fits.
func TestAllSecrets(t *testing.T) {
	w := enter(t)
	var all []Secret
	for i := range MaxSecrets {
		all = append(all, Secret{fmt.Sprintf("s%d", i), make([]byte, MaxSecretBytes)})
	}
	w.wantDo(w.plan(Policy{}, Task{Secrets: all}), "length:"+SecretsDir+"/s0", "65536", "length:"+SecretsDir+"/s31", "65536")
}

// Nothing of a secret can be found from outside, nor in what tells of the call.
func TestSecretsAreNowhereElse(t *testing.T) {
	w := enter(t)
	const data = "find-me-if-you-can"
	secret := Secret{"token", []byte(data)}
	p := w.plan(Policy{}, Task{Secrets: []Secret{secret}})
	if got := w.do(p, "env:")[0]; strings.Contains(got, data) {
		t.Error("it is in the environment")
	}
	if got := w.do(p, "initargs:")[0]; strings.Contains(got, data) {
		t.Error("it is in the launcher's arguments or environment")
	}
	r := p.Receipt()
	if !slices.Equal(r.Secrets, []string{"token"}) {
		t.Errorf("the receipt says %q", r.Secrets)
	}
	for _, text := range []string{fmt.Sprint(r, secret), fmt.Sprintf("%+v %#v", Task{Secrets: []Secret{secret}}, []Secret{secret})} {
		if strings.Contains(text, data) || strings.Contains(text, fmt.Sprint([]byte(data))) {
			t.Errorf("it is printed: %s", text)
		}
	}
}

func TestSecretsThatAreRefused(t *testing.T) {
	const data = "never told"
	one := func(name string) []Secret { return []Secret{{name, []byte(data)}} }
	for _, c := range []struct {
		secrets []Secret
		part    string
	}{
		{one(""), `name "" is invalid`},
		{one("."), "is invalid"},
		{one(".hidden"), "begin with no '.'"},
		{one("../etc/passwd"), "is invalid"},
		{one("a/b"), "is invalid"},
		{one("a\nb"), `"a\nb" is invalid`},
		{one("ä"), "is invalid"},
		{one(strings.Repeat("x", 129)), "is invalid"},
		{append(one("twice"), one("twice")...), "twice is given twice"},
		{[]Secret{{"big", make([]byte, MaxSecretBytes+1)}}, "big has 65537 bytes, at most 65536"},
		{slices.Repeat(one("x"), MaxSecrets+1), "33 secret files, at most 32"},
	} {
		_, err := resolve(t, Policy{}).Plan(complete(true), Task{Secrets: c.secrets})
		wantError(t, err, c.part)
		if err != nil && strings.Contains(err.Error(), data) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
	_, err := resolve(t, Policy{Tier: TierNone}).Plan(complete(true), Task{Secrets: one("token")})
	if _, ok := errors.AsType[*UnconfinedError](err); !ok {
		t.Errorf("error %v", err)
	}
	wantError(t, err, "secret file token", "choose tier native")
}

// A grant must not lie over them, nor they over a grant.
func TestSecretsBesideGrants(t *testing.T) {
	task := Task{Secrets: []Secret{{"token", nil}}}
	for _, target := range []string{SecretsDir, SecretsDir + "/token", SecretsDir + "/other"} {
		r := Resolved{grants: []grant{{source: "/x", target: target}}}
		_, err := r.Plan(complete(true), task)
		wantError(t, err, "cannot show "+target, "leave out one of the two")
		if _, err := r.Plan(complete(true), Task{}); err != nil {
			t.Errorf("without secret files: %v", err)
		}
	}
	task.Programs = []Program{{Source: "/x", Target: SecretsDir + "/tool"}}
	_, err := Resolved{}.Plan(complete(true), task)
	wantError(t, err, "cannot show "+SecretsDir+"/tool")
}
