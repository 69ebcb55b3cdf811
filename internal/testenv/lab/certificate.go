package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"time"
)

// certify makes the certificate of the servers, and the file with the one that it is
// signed by.
func (l *Lab) certify() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	names := []string{
		"a.test", "b.test", "x.wild.test", "y.z.wild.test", "git.test", "pip.test", "npm.test", "deb.test",
		"ws.test", "grpc.test", "crates.test", "php.test", "files.test",
		"pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "context7.com",
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, NotBefore: from, NotAfter: to, DNSNames: names,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, root, own.Public(), key)
	if err != nil {
		return nil, err
	}
	err = os.WriteFile(l.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed, der}, PrivateKey: own}}}, err
}
