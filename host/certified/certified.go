// Package certified makes package host refuse what is not certified: a worker, its
// libraries, an artifact and a runtime_config that have not passed a suite on a
// machine of this kind.
//
//	policy := &certified.Policy{Folder: "/opt/synapse/certificates", Keys: keys}
//	w, err := host.Start(ctx, host.Spec{Path: worker, Admit: policy.Admit})
//
// A load that is refused fails with a [*host.NotAdmitted], in which errors.As finds
// an [*Uncertified]. The certificates are those of `certify run --sign`.
package certified

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// Policy says which certificates are trusted, and where they lie.
type Policy struct {
	// Folder holds the certificates, as files whose names end in
	// ".certificate.json". It is read at each load, so that a new one counts at
	// once.
	Folder string

	// Keys are the public keys of those who certify.
	Keys []*certificate.Key

	// FreeConfig are the members of runtime_config that may differ from those of
	// the certificate, such as "threads". Default: none may.
	FreeConfig []string
}

// Uncertified says that no certificate allows a worker to load an artifact.
type Uncertified struct {
	Worker   string          // the worker's executable
	Artifact protocol.Digest // of what was to be loaded
	Folder   string          // where certificates were looked for
	Read     int             // how many were found there

	// Refusals are of the certificates for this very artifact, and of those that
	// could not be read at all.
	Refusals []Refusal
}

// Refusal is why one certificate does not hold here.
type Refusal struct {
	File string
	Err  error // joins a [*certificate.MismatchError] for each difference
}

func (e *Uncertified) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no certificate allows %s to load %s", filepath.Base(e.Worker), e.Artifact)
	if len(e.Refusals) == 0 {
		fmt.Fprintf(&b, ": none of the %d in %s is for this artifact", e.Read, e.Folder)
	}
	for _, r := range e.Refusals {
		fmt.Fprintf(&b, "; %s: %s", r.File, strings.ReplaceAll(r.Err.Error(), "\n", ", "))
	}
	fmt.Fprintf(&b, ". Use what was certified, or certify what is here: certify run SUITE --worker %s --sign KEY --out %s", e.Worker, e.Folder)
	return b.String()
}

// Unwrap returns the errors of the refusals.
func (e *Uncertified) Unwrap() []error {
	var all []error
	for _, r := range e.Refusals {
		all = append(all, r.Err)
	}
	return all
}

// Admit is for [host.Spec.Admit]. Its error is an [*Uncertified], or says why the
// certificates or the worker's files could not be read.
func (p *Policy) Admit(ctx context.Context, a host.Admission) error {
	here, err := whatIsHere(ctx, a)
	if err != nil {
		return err
	}
	files, err := certificates(p.Folder)
	if err != nil {
		return err
	}
	refused := &Uncertified{Worker: a.Worker, Artifact: a.Digest, Folder: p.Folder, Read: len(files)}
	for _, path := range files {
		c, err := p.open(ctx, path)
		if err == nil && c.Artifact.Digest != a.Digest {
			continue
		}
		if err == nil {
			err = p.holds(c, here, a)
		}
		if err == nil {
			return nil
		}
		refused.Refusals = append(refused.Refusals, Refusal{File: filepath.Base(path), Err: err})
	}
	return refused
}

// whatIsHere hashes the worker and the libraries that it was told to load, or
// finds beside itself.
func whatIsHere(ctx context.Context, a host.Admission) (h certificate.Here, err error) {
	h.Machine, h.Artifact = machine.This(ctx), a.Digest
	if h.Worker, err = certificate.DigestOf(a.Worker); err != nil {
		return h, err
	}
	h.Libraries, err = certificate.Libraries(a.Worker, engineLib(a.Args))
	return h, err
}

// engineLib is the value of the worker's flag --engine-lib, empty where it has
// none.
func engineLib(args []string) string {
	const flag = "--engine-lib"
	dir := ""
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			dir = value
		} else if arg == flag && i+1 < len(args) {
			dir = args[i+1]
		}
	}
	return dir
}
