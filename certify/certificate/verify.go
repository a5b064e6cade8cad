package certificate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/protocol"
)

// Here is what a certificate must be about.
type Here struct {
	Worker    protocol.Digest
	Libraries []File
	Artifact  protocol.Digest
	Machine   machine.Machine
}

// MismatchError is a certificate that holds, and not here.
type MismatchError struct {
	What              string
	Certified, IsHere string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: certified is %s, here is %s", e.What, e.Certified, e.IsHere)
}

// Open checks an envelope's signature by one of the keys, and that what it says
// is a certificate that held. It does not say that it holds here.
func Open(ctx context.Context, envelope []byte, keys ...*Key) (*Certificate, error) {
	var e dsse.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return nil, fmt.Errorf("no DSSE envelope: %w", err)
	}
	if e.PayloadType != payloadType {
		return nil, fmt.Errorf("the envelope holds a %q, wanted a %q", e.PayloadType, payloadType)
	}
	if len(keys) == 0 {
		return nil, errors.New("no key is trusted")
	}
	verifiers := make([]dsse.Verifier, len(keys))
	for i, k := range keys {
		verifiers[i] = k
	}
	v, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return nil, err
	}
	// The payload that was verified is the one that is read.
	_, payload, err := v.VerifyAndDecode(ctx, &e)
	if err != nil {
		return nil, fmt.Errorf("not signed by a trusted key: %w", err)
	}
	c, err := ofStatement(payload)
	if err != nil {
		return nil, err
	}
	if !c.held() {
		return nil, errors.New("void: it says of itself that a check failed, or that a control was not caught")
	}
	return c, nil
}

// Holds wants what is here to be what was certified. Its error joins a
// [MismatchError] for each difference.
func (c *Certificate) Holds(h Here) error {
	var errs []error
	same := func(what, certified, here string) {
		if certified != here {
			errs = append(errs, &MismatchError{what, certified, here})
		}
	}
	same("worker", string(c.Worker.Digest), string(h.Worker))
	same("artifact", string(c.Artifact.Digest), string(h.Artifact))
	for _, l := range c.Libraries {
		at := slices.IndexFunc(h.Libraries, func(f File) bool { return f.Name == l.Name })
		if at < 0 {
			same("library "+l.Name, string(l.Digest), "missing")
			continue
		}
		same("library "+l.Name, string(l.Digest), string(h.Libraries[at].Digest))
	}
	for _, f := range h.Libraries {
		if !slices.ContainsFunc(c.Libraries, func(l File) bool { return l.Name == f.Name }) {
			same("library "+f.Name, "without it", string(f.Digest))
		}
	}
	same("system", system(c.Machine), system(h.Machine))
	same("instruction-set class", c.Machine.ISA, h.Machine.ISA)
	return errors.Join(errs...)
}

func system(m machine.Machine) string {
	return fmt.Sprintf("%s/%s %s %s", m.OS, m.Arch, m.OSName, m.OSVersion)
}
