package protocol_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/synapse-module/workers/protocol"
)

// The SHA-256 of nothing and of "abc", from FIPS 180-4's examples.
const (
	emptySHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	abcSHA   = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
)

func TestParseDigest(t *testing.T) {
	for _, s := range []string{"sha256:" + abcSHA, "sha256-tree:" + abcSHA} {
		d, err := protocol.ParseDigest(s)
		if err != nil || string(d) != s || d.Hex() != abcSHA || d.IsTree() != strings.HasPrefix(s, "sha256-tree:") {
			t.Errorf("%s: %q, %v", s, d, err)
		}
	}
	for name, s := range map[string]string{
		"nothing":            "",
		"no scheme":          abcSHA,
		"another scheme":     "sha512:" + abcSHA,
		"scheme in capitals": "SHA256:" + abcSHA,
		"another tree":       "sha256-dir:" + abcSHA,
		"no digits":          "sha256:",
		"63 digits":          "sha256:" + abcSHA[1:],
		"65 digits":          "sha256:" + abcSHA + "0",
		"capitals":           "sha256:" + strings.ToUpper(abcSHA),
		"no hex at the end":  "sha256:" + abcSHA[1:] + "g",
		"no hex inside":      "sha256:" + abcSHA[:32] + "-" + abcSHA[33:],
		"a blank before":     " sha256:" + abcSHA,
		"a blank behind":     "sha256:" + abcSHA + " ",
		"two schemes":        "sha256:sha256:" + abcSHA,
		"a megabyte":         "sha256:" + strings.Repeat("a", 1<<20),
	} {
		var refusal *protocol.Error
		if d, err := protocol.ParseDigest(s); !errors.As(err, &refusal) || refusal.Code != protocol.CodeRequestInvalid || d != "" || len(refusal.Msg) > 200 {
			t.Errorf("%s: %q, %v", name, d, err)
		}
	}
}

func TestFileDigest(t *testing.T) {
	for content, want := range map[string]string{"": emptySHA, "abc": abcSHA} {
		if d, err := protocol.FileDigest(iotest.OneByteReader(strings.NewReader(content))); err != nil || string(d) != "sha256:"+want || d.IsTree() {
			t.Errorf("%q: %s, %v", content, d, err)
		}
	}
	broken := errors.New("broken")
	if d, err := protocol.FileDigest(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))); !errors.Is(err, broken) || d != "" {
		t.Errorf("%q, %v", d, err)
	}
}
