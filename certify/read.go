package certify

import (
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
)

// ReadResult reads a result.json.
func ReadResult(path string) (*Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if version.Schema != ResultSchema {
		return nil, fmt.Errorf("%s: schema %d, this certify reads %d", path, version.Schema, ResultSchema)
	}
	r := new(Result)
	if err := json.Unmarshal(b, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
