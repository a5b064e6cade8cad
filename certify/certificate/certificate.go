package certificate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	attestation "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/protocol"
)

const (
	// Version is the version of the predicate.
	Version = 1

	// PredicateType names it in the in-toto statement.
	PredicateType = "https://github.com/synapse-module/workers/certify/certificate/v1"

	// payloadType is DSSE's name for an in-toto statement.
	payloadType = "application/vnd.in-toto+json"
)

// Certificate says what passed, and where.
type Certificate struct {
	Version   int             `json:"version"`
	Issued    time.Time       `json:"issued"`
	Tool      string          `json:"tool"` // version of certify
	Worker    File            `json:"worker"`
	Engine    protocol.Engine `json:"engine"`
	Libraries []File          `json:"libraries"`
	Artifact  Artifact        `json:"artifact"`
	Model     string          `json:"model"`
	Suite     File            `json:"suite"` // its name, and the digest of its folder
	Machine   machine.Machine `json:"machine"`
	Checks    []gate.Check    `json:"checks"`
	Controls  []gate.Control  `json:"controls"`
}

// Artifact is the model that was certified, and how it was loaded.
type Artifact struct {
	File
	Format    string         `json:"format"`
	Requested jsontext.Value `json:"requested"` // the runtime_config of LOAD, {} for the engine's defaults
	Config    jsontext.Value `json:"config"`    // the runtime_config in force
}

// held reports whether every check passed and every control was caught, but for
// those whose fault cannot show on the machine.
func (c *Certificate) held() bool {
	caught := 0
	for _, k := range c.Controls {
		if k.Void() {
			return false
		}
		if k.Held {
			caught++
		}
	}
	return gate.Passed(c.Checks) && caught > 0
}

// statement writes the certificate as an in-toto statement.
func (c *Certificate) statement() ([]byte, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	predicate := new(structpb.Struct)
	if err := protojson.Unmarshal(b, predicate); err != nil {
		return nil, err
	}
	s := &attestation.Statement{Type: attestation.StatementTypeUri, PredicateType: PredicateType, Predicate: predicate, Subject: c.subjects()}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return protojson.Marshal(s)
}

// subjects are the files that the certificate is about.
func (c *Certificate) subjects() []*attestation.ResourceDescriptor {
	var all []*attestation.ResourceDescriptor
	for _, f := range append([]File{c.Worker, c.Artifact.File}, c.Libraries...) {
		all = append(all, f.subject())
	}
	return all
}

// ofStatement reads a statement and holds its subjects to its predicate.
func ofStatement(payload []byte) (*Certificate, error) {
	s := new(attestation.Statement)
	if err := protojson.Unmarshal(payload, s); err != nil {
		return nil, fmt.Errorf("the payload is no in-toto statement: %w", err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("the payload is no in-toto statement: %w", err)
	}
	if s.GetPredicateType() != PredicateType {
		return nil, fmt.Errorf("the statement is a %q, wanted a %q", s.GetPredicateType(), PredicateType)
	}
	b, err := protojson.Marshal(s.GetPredicate())
	if err != nil {
		return nil, err
	}
	c := new(Certificate)
	if err := json.Unmarshal(b, c, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	if c.Version != Version {
		return nil, fmt.Errorf("the certificate has version %d, this program reads %d", c.Version, Version)
	}
	if !slices.EqualFunc(s.GetSubject(), c.subjects(), func(a, b *attestation.ResourceDescriptor) bool { return proto.Equal(a, b) }) {
		return nil, errors.New("the statement's subjects are not the files that its certificate names")
	}
	return c, nil
}
