package certificate

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/protocol"
)

func digest(c string) protocol.Digest { return protocol.Digest("sha256:" + strings.Repeat(c, 64)) }

func sample() *Certificate {
	return &Certificate{
		Version: Version, Issued: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Tool: "1.0",
		Worker:    File{"worker-onnx", digest("a")},
		Engine:    protocol.Engine{Name: "onnx", Version: "1", BuildFlags: []string{}},
		Libraries: []File{{"onnxruntime/lib.so", digest("b")}},
		Artifact:  Artifact{File: File{"model", "sha256-tree:" + protocol.Digest(strings.Repeat("c", 64))}, Format: "mlpackage", Requested: []byte(`{}`), Config: []byte(`{"threads":2}`)},
		Model:     "a model", Suite: File{"a-suite", digest("d")},
		Machine:  machine.Machine{OS: "linux", Arch: "amd64", OSName: "debian", OSVersion: "12", ISA: "x86-64-v4", Cores: 2},
		Checks:   []gate.Check{{Gate: "cosine", Figure: "min", Value: 0.99999, Relation: gate.AtLeast, Limit: 0.9999, Passed: true}},
		Controls: []gate.Control{{Name: "swapped_pooling", Held: true, Checks: []gate.Check{}}},
	}
}

func here(c *Certificate) Here {
	return Here{Worker: c.Worker.Digest, Libraries: c.Libraries, Artifact: c.Artifact.Digest, Machine: c.Machine}
}

// newKeys makes a key and reads its private and its public half.
func newKeys(t *testing.T) (private, public *Key) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	read := func(kind string, der []byte) *Key {
		path := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := ReadKey(path)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	return read("PRIVATE KEY", pkcs8), read("PUBLIC KEY", pkix)
}

func signed(t *testing.T, c *Certificate, k *Key) []byte {
	t.Helper()
	envelope, err := Sign(context.Background(), c, k)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func TestACertificateHoldsWhereItWasMade(t *testing.T) {
	private, public := newKeys(t)
	_, other := newKeys(t)
	want := sample()
	got, err := Open(t.Context(), signed(t, want, private), other, public)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Holds(here(want)); err != nil {
		t.Error(err)
	}
	a, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(want)
	if err != nil || string(a) != string(b) {
		t.Errorf("read back %s\nwritten   %s, %v", a, b, err)
	}
}

func TestHoldsNamesEachDifference(t *testing.T) {
	for what, change := range map[string]func(*Here){
		"worker":                     func(h *Here) { h.Worker = digest("f") },
		"artifact":                   func(h *Here) { h.Artifact = digest("f") },
		"library onnxruntime/lib.so": func(h *Here) { h.Libraries = []File{{"onnxruntime/lib.so", digest("f")}} },
		"library missing":            func(h *Here) { h.Libraries = nil },
		"library more.so":            func(h *Here) { h.Libraries = append(h.Libraries[:1:1], File{"more.so", digest("f")}) },
		"system":                     func(h *Here) { h.Machine.OSVersion = "13" },
		"instruction-set class":      func(h *Here) { h.Machine.ISA = "x86-64-v3" },
	} {
		c := sample()
		h := here(c)
		change(&h)
		err := c.Holds(h)
		var mismatch *MismatchError
		if !errors.As(err, &mismatch) {
			t.Errorf("%s: %v is no mismatch", what, err)
			continue
		}
		if want, _, _ := strings.Cut(what, " missing"); !strings.HasPrefix(mismatch.What, want) {
			t.Errorf("%s: named %s", what, mismatch.What)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	private, public := newKeys(t)
	_, stranger := newKeys(t)
	envelope := signed(t, sample(), private)

	if _, err := Open(t.Context(), envelope, stranger); err == nil || !strings.Contains(err.Error(), "not signed by a trusted key") {
		t.Errorf("a stranger's key: %v", err)
	}
	if _, err := Open(t.Context(), envelope); err == nil {
		t.Error("no key at all opens it")
	}
	if _, err := Open(t.Context(), []byte("{}"), public); err == nil {
		t.Error("an empty envelope opens")
	}
	// Every byte of the payload is under the signature.
	var e dsse.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		t.Fatal(err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(payload), "0.9999", "0.1111", 1)
	if changed == string(payload) {
		t.Fatal("the payload does not hold the figure")
	}
	e.Payload = base64.StdEncoding.EncodeToString([]byte(changed))
	tampered, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), tampered, public); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("a changed payload: %v", err)
	}
}

// What is signed by the right key can still be no certificate of ours.
func TestOpenRefusesWhatIsSignedAndWrong(t *testing.T) {
	private, public := newKeys(t)
	statement, err := sample().statement()
	if err != nil {
		t.Fatal(err)
	}
	// protojson puts spaces where it likes.
	var compact bytes.Buffer
	if err := json.Compact(&compact, statement); err != nil {
		t.Fatal(err)
	}
	good := compact.String()
	for name, c := range map[string]struct{ kind, payload, want string }{
		"another payload":   {"text/plain", good, "text/plain"},
		"no statement":      {payloadType, `{}`, "no in-toto statement"},
		"another predicate": {payloadType, strings.Replace(good, "certificate/v1", "certificate/v2", 1), "certificate/v2"},
		"other subjects":    {payloadType, strings.Replace(good, strings.Repeat("a", 64), strings.Repeat("e", 64), 1), "subjects"},
		"another version":   {payloadType, strings.Replace(good, `"version":1,`, `"version":2,`, 1), "version"},
		"a failed check":    {payloadType, strings.Replace(good, `"passed":true`, `"passed":false`, 1), "void"},
		"a control passed":  {payloadType, strings.Replace(good, `"held":true`, `"held":false`, 1), "void"},
		"an unknown member": {payloadType, strings.Replace(good, `"tool":`, `"tooth":`, 1), "tooth"},
	} {
		t.Run(name, func(t *testing.T) {
			signer, err := dsse.NewEnvelopeSigner(private)
			if err != nil {
				t.Fatal(err)
			}
			e, err := signer.SignPayload(t.Context(), c.kind, []byte(c.payload))
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(t.Context(), b, public); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestSignRefusesWhatDidNotHold(t *testing.T) {
	private, public := newKeys(t)
	for name, change := range map[string]func(*Certificate){
		"a failed check":        func(c *Certificate) { c.Checks[0].Passed = false },
		"no checks":             func(c *Certificate) { c.Checks = nil },
		"a control that passed": func(c *Certificate) { c.Controls[0].Held = false },
		"no controls":           func(c *Certificate) { c.Controls = nil },
	} {
		c := sample()
		change(c)
		if _, err := Sign(t.Context(), c, private); err == nil {
			t.Errorf("%s is signed", name)
		}
	}
	if _, err := Sign(t.Context(), sample(), public); err == nil {
		t.Error("a public key signs")
	}
}

func TestReadKeyRefusesWhatIsNoEd25519Key(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v does not name the file", err)
	}
}

func TestLibrariesAreTheFilesBesideTheWorker(t *testing.T) {
	dir := t.TempDir()
	worker := filepath.Join(dir, "worker")
	if err := os.WriteFile(worker, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := Libraries(worker, ""); err != nil || len(all) != 0 {
		t.Errorf("without a lib directory: %v, %v", all, err)
	}
	if _, err := Libraries(worker, filepath.Join(dir, "nosuch")); err == nil {
		t.Error("a named directory that is not there is no error")
	}
	if err := os.MkdirAll(filepath.Join(dir, "lib", "engine"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lib", "engine", "x.so"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{"", filepath.Join(dir, "lib")} {
		if all, err := Libraries(worker, told); err != nil || len(all) != 1 || all[0].Name != "engine/x.so" {
			t.Errorf("%q: %v, %v", told, all, err)
		}
	}
}
