package fleetops

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/doctor"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// Each state of a worker has words of its own, and calls that cannot run are a failure.
func TestDoctorOfWorkers(t *testing.T) {
	const own = "1.0"
	heard := []api.Worker{
		{Name: "cut", State: api.WorkerSuspect, SilentMs: 300, Version: own, Trouble: "it has sent more than it may"},
		{Name: "deaf", State: api.WorkerSuspect, SilentMs: 300, Version: own},
		{Name: "disk", State: api.WorkerTaking, Version: own, Slots: 4, Trouble: "no space left"},
		{Name: "drains", State: api.WorkerDraining, Version: own},
		{Name: "ended", State: workerLeft},
		{Name: "gone", State: workerRemoved},
		{Name: "old", State: api.WorkerTaking, Version: "0.1", Free: 1, Slots: 2},
		{Name: "other", State: api.WorkerIncompatible, Version: "9.0", Free: 1, Slots: 2},
		{Name: "silent", State: api.WorkerSuspect, SilentMs: 2345, Version: own},
		{Name: "well", State: api.WorkerTaking, Version: own, Free: 3, Slots: 4},
	}
	p := Parties{config.Fleet{Listen: "0.0.0.0:7420", Cert: "c.pem", Local: "never", Workers: map[string]string{"absent": "U1", "well": "U2"}}, "UCALLER", nil}
	got := checkWorkers(p, heard, own)
	for i, want := range []doctor.Finding{
		doctor.Warn("worker absent", "not heard it", "toolhost worker --url tls://THIS-MACHINE:7420 --name absent --key FILE --caller UCALLER --ca FILE"),
		doctor.Warn("worker cut", "sent more than it may", "the worker's log"),
		doctor.Warn("worker deaf", "does not hear the daemon", "--caller UCALLER"),
		doctor.Warn("worker disk", "no space left", "the worker's log"),
		doctor.Warn("worker drains", "takes no more calls", "start it again"),
		doctor.Warn("worker ended", "drained or stopped", "start it again when it is to take calls: toolhost worker --url"),
		doctor.Warn("worker gone", "was removed", "another key"),
		doctor.Warn("worker old", "its version is 0.1", "same version"),
		doctor.Fail("worker other", "its version 9.0 and this one's "+own+" speak different protocols", "install the same version on both"),
		doctor.Warn("worker silent", "last heard 2.3s ago", "its log"),
		doctor.OK("worker well", "3 of 4 slots are free"),
		doctor.OK("fleet", "3 of 11 workers take calls"),
	} {
		if f := got[i]; f.Check != want.Check || f.Level != want.Level || !strings.Contains(f.Detail, want.Detail) || !strings.Contains(f.Remedy, want.Remedy) {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	servers := p
	servers.Listen, servers.URL = "", "tls://nats:7420"
	if f := checkWorker(servers, api.Worker{Name: "gone", State: workerRemoved}, own); !strings.Contains(f.Detail, "the NATS servers let its key in until") || !strings.Contains(f.Remedy, "toolhost fleet nats-config") {
		t.Errorf("%+v", f)
	}
	for local, want := range map[string]string{"never": doctor.LevelFail, "prefer": doctor.LevelWarn} {
		p.Local = local
		if found := checkWorkers(p, heard[:1], own); found[len(found)-1].Level != want {
			t.Errorf("local %s: %+v, want %s", local, found[len(found)-1], want)
		}
	}
}

// Of NATS servers the daemon says whether it is connected to them.
func TestDoctorOfServers(t *testing.T) {
	p := Parties{Fleet: config.Fleet{URL: "tls://nats:7420"}}
	for _, x := range []struct {
		says api.Engine
		want doctor.Finding
	}{
		{api.Engine{}, doctor.Warn("", "it is not known whether the daemon is connected to the NATS servers at tls://nats:7420", "start the daemon")},
		{api.Engine{URL: p.URL}, doctor.OK("", "the daemon is connected to the NATS servers at tls://nats:7420")},
		{api.Engine{URL: p.URL, Trouble: "EOF", Remedy: "start them", SilentMs: 61_234}, doctor.Fail("", "has not been connected to the NATS servers at tls://nats:7420 for 1m1.2s: EOF", "start them")},
	} {
		if f := checkEngine(p, x.says, time.Now()); f.Level != x.want.Level || !strings.Contains(f.Detail, x.want.Detail) || f.Remedy != x.want.Remedy {
			t.Errorf("%+v, want %+v", f, x.want)
		}
	}
}

func TestDoctorOfCertificates(t *testing.T) {
	now := time.Now()
	p := Parties{Fleet: config.Fleet{Listen: "0.0.0.0:7420", Cert: t.TempDir() + "/cert.pem"}}
	p.CertKey = p.Cert
	if f := checkEngine(p, api.Engine{}, now); f.Level != doctor.LevelFail || !strings.Contains(f.Detail, "no such file") {
		t.Errorf("%+v", f)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now.Add(30 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(p.Cert, both, 0o600); err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{0: doctor.LevelOK, 20: doctor.LevelWarn, 40: doctor.LevelFail} {
		if f := checkEngine(p, api.Engine{}, now.AddDate(0, 0, days)); f.Level != want || (f.Remedy == "") != (want == doctor.LevelOK) {
			t.Errorf("after %d days: %+v, want %s", days, f, want)
		}
	}
}
