package host

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The order and spelling of a config do not matter, its values do: none is
// rounded on the way to the worker.
func TestConfigIsCanonicalAndExact(t *testing.T) {
	const want = `{"a":0.1000000000000000000001,"n":9007199254740993,"s":"a/b"}`
	for _, config := range []string{
		`{"n":9007199254740993,"s":"a\/b","a":0.1000000000000000000001}`,
		` { "s" : "\u0061/b", "a" : 0.1000000000000000000001, "n" : 9007199254740993 } `,
	} {
		if got, err := configJSON(jsontext.Value(config)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v, want %s", config, got, err, want)
		}
	}
	type config struct {
		Seed uint64 `json:"seed"`
	}
	if got, err := configJSON(config{1<<63 + 1}); err != nil || string(got) != `{"seed":9223372036854775809}` {
		t.Errorf("%s, %v", got, err)
	}
	for _, none := range []any{nil, (*config)(nil), jsontext.Value("null")} {
		if got, err := configJSON(none); err != nil || got != nil {
			t.Errorf("%v became %s, %v", none, got, err)
		}
	}
}
