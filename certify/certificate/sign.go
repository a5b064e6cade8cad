package certificate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
)

// Key is an Ed25519 key, to sign with where it has its private half.
type Key struct {
	*signerverifier.ED25519SignerVerifier
	private bool
}

// ReadKey reads an Ed25519 key in PEM: PKCS#8 where it is private, PKIX where it
// is public, as openssl writes them.
func ReadKey(path string) (*Key, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	k, err := signerverifier.LoadKey(pem)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if k.KeyType != signerverifier.ED25519KeyType {
		return nil, fmt.Errorf("%s holds a key for %s, wanted one for ed25519", path, k.KeyType)
	}
	sv, err := signerverifier.NewED25519SignerVerifierFromSSLibKey(k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Key{sv, k.KeyVal.Private != ""}, nil
}

// CanSign reports whether the key has its private half.
func (k *Key) CanSign() bool { return k.private }

// Sign writes a certificate as a signed envelope. One whose checks did not all
// pass, or whose controls were not all caught, is not signed.
func Sign(ctx context.Context, c *Certificate, k *Key) ([]byte, error) {
	switch {
	case !c.held():
		return nil, errors.New("not signed: a check failed, or a control was not caught")
	case !k.CanSign():
		return nil, errors.New("the key has no private half to sign with")
	}
	payload, err := c.statement()
	if err != nil {
		return nil, fmt.Errorf("write the statement: %w", err)
	}
	signer, err := dsse.NewEnvelopeSigner(k)
	if err != nil {
		return nil, err
	}
	envelope, err := signer.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return json.Marshal(envelope, jsontext.WithIndent("  "))
}
