package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// newKey writes an Ed25519 key as openssl does: newkey PRIVATE PUBLIC.
func newKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: newkey PRIVATE PUBLIC")
	}
	public, private, err := ed25519.GenerateKey(nil)
	ts.Check(err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	ts.Check(err)
	pkix, err := x509.MarshalPKIXPublicKey(public)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}), 0o600))
}
