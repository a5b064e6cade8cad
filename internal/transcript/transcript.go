// Package transcript reads the golden transcripts of docs/protocol, whose README
// describes the format. Tests of both sides replay them.
package transcript

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
)

// The two sides of a connection.
const (
	Worker = "worker"
	Module = "module"
)

// The kinds of step.
const (
	Control = "control" // a control frame; Message is its JSON object
	Raw     = "raw"     // a raw frame; I32 or F32 are its values where its type is known
	Bytes   = "bytes"   // bytes that are no sound frame
	End     = "end"     // the side closes its connection
)

// The ways in which a conversation ends.
const (
	Exit = "exit" // the worker exits with Status
	Kill = "kill" // the module closes the connection and kills the worker
)

// Transcript is one conversation.
type Transcript struct {
	Name   string  `json:"name"`
	About  string  `json:"about"`
	Start  Start   `json:"start"`
	Steps  []Step  `json:"steps"`
	Expect Outcome `json:"expect"`
}

// Start is what a worker is started with.
type Start struct {
	Nonce string            `json:"nonce"`
	Files map[string]string `json:"files,omitempty"` // in its working directory: name to contents
}

// Step is what one side sends next.
type Step struct {
	From    string         `json:"from"`
	Frame   string         `json:"frame"`
	About   string         `json:"about,omitempty"`
	Message jsontext.Value `json:"message,omitempty"`
	Vary    []string       `json:"vary,omitempty"` // members of Message that depend on the run
	Loose   bool           `json:"loose,omitzero"` // sound, but written in another way than this project's
	I32     []int32        `json:"i32,omitzero"`
	F32     []float32      `json:"f32,omitzero"`
	Hex     string         `json:"hex,omitempty"` // all bytes of the step, a frame's length included
}

// Outcome is what the side that must act does after the last step.
type Outcome struct {
	By     string `json:"by"`
	Does   string `json:"does"`
	Status int    `json:"status"` // exit status of the worker; -1 where it is killed
	Why    string `json:"why"`
}

// Bytes is what the step puts on the wire.
func (s Step) Bytes() ([]byte, error) { return hex.DecodeString(s.Hex) }

// Payload is the one frame that the step's bytes are, without its length.
func (s Step) Payload() ([]byte, error) {
	b, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)-4) {
		return nil, fmt.Errorf("%d bytes that are not one frame", len(b))
	}
	return b[4:], nil
}

// Same says whether a control frame's payload is the step's, but for the members
// that vary: the same members in the same order, the same bytes.
func (s Step) Same(payload []byte) (bool, error) {
	want, err := s.Payload()
	if err != nil {
		return false, err
	}
	got, err := s.level(payload)
	if err != nil {
		return false, err
	}
	want, err = s.level(want)
	return string(got) == string(want), err
}

// level writes a JSON object again with the values of varying members left out.
func (s Step) level(payload []byte) ([]byte, error) {
	var members Members
	if err := json.Unmarshal(payload, &members); err != nil {
		return nil, err
	}
	for i, m := range members {
		if slices.Contains(s.Vary, m.Name) {
			members[i].Value = jsontext.Value("null")
		}
	}
	return json.Marshal(members, jsontext.PreserveRawStrings(true))
}

// Members is a JSON object whose order and raw values are kept.
type Members []Member

// Member is one of its members.
type Member struct {
	Name  string
	Value jsontext.Value
}

// UnmarshalJSONFrom reads an object.
func (m *Members) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*m = nil
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		member := Member{Name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		member.Value = value.Clone()
		*m = append(*m, member)
	}
	_, err := dec.ReadToken()
	return err
}

// MarshalJSONTo writes the object as it was read.
func (m Members) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, member := range m {
		if err := enc.WriteToken(jsontext.String(member.Name)); err != nil {
			return err
		}
		if err := enc.WriteValue(member.Value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// All reads every transcript of a directory, by name.
func All(dir string) ([]Transcript, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no transcript: %w", dir, fs.ErrNotExist)
	}
	var all []Transcript
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var t Transcript
		if err := json.Unmarshal(b, &t, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if t.Name != strings.TrimSuffix(filepath.Base(path), ".json") {
			return nil, fmt.Errorf("%s is named %q inside", path, t.Name)
		}
		all = append(all, t)
	}
	return all, nil
}

// Type is the message type of a control step.
func (s Step) Type() protocol.Type {
	payload, err := s.Payload()
	if err != nil {
		return ""
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		return ""
	}
	return h.Type
}
