package main

import (
	"context"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/host/certified"
)

// The module wants certificates where its environment says where they lie, and
// whose signature it trusts.
const (
	envCertificates = "SYNAPSE_CERTIFICATES" // a folder
	envKey          = "SYNAPSE_KEY"          // an Ed25519 public key, PEM
)

// onlyCertified lets a worker load only what a certificate in folder holds for.
func onlyCertified(folder, key string) (func(context.Context, host.Admission) error, error) {
	trusted, err := certificate.ReadKey(key)
	if err != nil {
		return nil, err
	}
	policy := &certified.Policy{Folder: folder, Keys: []*certificate.Key{trusted}, FreeConfig: []string{"threads"}}
	return policy.Admit, nil
}
