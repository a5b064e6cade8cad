package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shape is what a type fixes about its messages.
type shape struct {
	rawFrames int
	required  []string // members that must be there and not null
}

// shapes knows every type of v1. The package json (v2) gives the rest of the
// strictness: names are case-sensitive, duplicates and invalid UTF-8 are
// refused, unknown members are ignored.
var shapes = map[Type]shape{
	TypeHello:       {0, []string{"v", "nonce", "engine", "pid", "max_frame"}},
	TypeHelloAck:    {0, []string{"v", "accept"}},
	TypeLoad:        {0, []string{"req_id", "artifact_path", "artifact_digest", "format"}},
	TypeLoaded:      {0, []string{"req_id", "model_ref", "dims", "cold_load_ms"}},
	TypeEmbedBatch:  {1, []string{"req_id", "model_ref", "normalize", "items"}},
	TypeVectors:     {1, []string{"req_id", "dims", "n"}},
	TypeRerank:      {1, []string{"req_id", "model_ref", "query_n_tokens", "candidates"}},
	TypeScores:      {1, []string{"req_id", "n"}},
	TypeGenerate:    {1, []string{"req_id", "model_ref", "max_tokens"}},
	TypeText:        {0, []string{"req_id", "text", "n_prompt", "n_gen", "finish_reason"}},
	TypeUnload:      {0, []string{"req_id", "model_ref"}},
	TypeUnloaded:    {0, []string{"req_id"}},
	TypePing:        {0, []string{"req_id"}},
	TypePong:        {0, []string{"req_id", "rss_mb", "models_loaded"}},
	TypeDescribe:    {0, []string{"req_id", "model_ref"}},
	TypeDescription: {0, []string{"req_id", "engine", "arch", "dims", "max_tokens", "vocab_size", "pooling", "default_pooling", "rerank", "generate", "grammar", "config"}},
	TypeShutdown:    {0, nil},
	TypeErr:         {0, []string{"code", "msg"}},
}

// requiredNames is every name that some type requires: what Parse remembers of a
// frame, so that a frame of a million members costs no more than its bytes.
var requiredNames = func() map[string]bool {
	names := map[string]bool{}
	for _, s := range shapes {
		for _, name := range s.required {
			names[name] = true
		}
	}
	return names
}()

// Header is a control frame whose type is known and whose JSON is sound. Its
// members are not decoded yet, so that even a request with a malformed member
// can be answered in step. It refers to the payload that it was parsed from.
type Header struct {
	Type      Type
	ReqID     ID   // zero where it is absent, doubled or malformed
	RawFrames int  // how many raw frames follow
	Known     bool // a type of this version

	payload []byte
	members []string // of requiredNames, those that are present and not null
}

// Parse reads of a control frame what a receiver must know before it may trust
// the rest. Whatever leaves open how the stream goes on is a [ViolationError]:
// bytes that are not one JSON object in UTF-8, a type that is absent, doubled or
// no string, raw_frames of an unknown type that is doubled or not
// 0..[MaxRawFrames].
func Parse(payload []byte) (Header, error) {
	h := Header{payload: payload}
	dec := jsontext.NewDecoder(bytes.NewBuffer(payload), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != jsontext.KindBeginObject {
		return h, Violation("a control frame does not hold a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return h, notJSON(err)
	}
	var rawFrames jsontext.Value
	var idSeen, rawFramesTwice bool
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return h, notJSON(err)
		}
		member := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return h, notJSON(err)
		}
		if value.Kind() != jsontext.KindNull && requiredNames[member] && !slices.Contains(h.members, member) {
			h.members = append(h.members, member)
		}
		switch member {
		case "type":
			if h.Type != "" {
				return h, Violation("a control frame with two members \"type\"")
			}
			s, err := jsontext.AppendUnquote(nil, value)
			if value.Kind() != jsontext.KindString || err != nil || len(s) == 0 {
				return h, Violation("a control frame whose \"type\" is not a name")
			}
			h.Type = Type(s)
		case "req_id":
			id, err := idOf(value)
			if idSeen || err != nil {
				id = "" // Decode says what is wrong with it
			}
			h.ReqID, idSeen = id, true
		case "raw_frames":
			rawFramesTwice = rawFrames != nil
			rawFrames = bytes.Clone(value)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return h, notJSON(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return h, Violation("a control frame with bytes after its JSON object")
	}
	if h.Type == "" {
		return h, Violation("a control frame without the member \"type\"")
	}
	if s, ok := shapes[h.Type]; ok {
		h.Known, h.RawFrames = true, s.rawFrames
		return h, nil
	}
	if rawFramesTwice {
		return h, Violation("%s with two members \"raw_frames\"", clip(string(h.Type)))
	}
	if rawFrames != nil {
		var n uint8
		if err := json.Unmarshal(rawFrames, &n); err != nil || n > MaxRawFrames {
			return h, Violation("%s announces raw_frames %.32s, legal is 0 to %d", clip(string(h.Type)), rawFrames, MaxRawFrames)
		}
		h.RawFrames = int(n)
	}
	return h, nil
}

func notJSON(err error) error {
	return &ViolationError{Reason: "a control frame is not JSON in UTF-8", Err: err}
}

// Decode fills m, whose type must be the header's, or says which member is
// malformed: an [Error] of [CodeRequestInvalid].
func (h Header) Decode(m Message) error {
	if m.MessageType() != h.Type {
		return Errorf(CodeRequestInvalid, "got %s, wanted %s", clip(string(h.Type)), m.MessageType())
	}
	for _, name := range shapes[h.Type].required {
		if !slices.Contains(h.members, name) {
			return Errorf(CodeRequestInvalid, "%s: the member %q is missing", h.Type, name)
		}
	}
	if err := json.Unmarshal(h.payload, m); err != nil {
		return Errorf(CodeRequestInvalid, "%s: %s", h.Type, describe(err))
	}
	return nil
}

// DecodeErr turns a received ERR into the [Error] that it carries, any other
// message into a [ViolationError].
func (h Header) DecodeErr() error {
	var m Err
	if err := h.Decode(&m); err != nil {
		return &ViolationError{Reason: "a malformed ERR", Err: err}
	}
	return &Error{Code: m.Code, Msg: m.Msg}
}

// describe says in the wire's terms what the JSON package found: the member's
// path and what was there, without the names of Go types.
func describe(err error) string {
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		if errors.Is(syn, jsontext.ErrDuplicateName) {
			return fmt.Sprintf("the member %q stands there twice", path(syn.JSONPointer))
		}
		return syn.Err.Error()
	}
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		var e *Error
		switch {
		case errors.As(sem.Err, &e):
			return fmt.Sprintf("the member %q: %s", path(sem.JSONPointer), e.Msg)
		case len(sem.JSONValue) > 0:
			return fmt.Sprintf("the member %q is %s, which does not fit", path(sem.JSONPointer), clip(string(sem.JSONValue)))
		}
		return fmt.Sprintf("the member %q is a JSON %s, which does not fit", path(sem.JSONPointer), kindName(sem.JSONKind))
	}
	return err.Error()
}

// kindName is a kind's name; the JSON package's own for the two containers is
// their bracket.
func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindBeginObject:
		return "object"
	case jsontext.KindBeginArray:
		return "array"
	}
	return k.String()
}

// path turns the JSON pointer /items/3/n_tokens into items[3].n_tokens.
func path(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(clip(token))
	}
	return b.String()
}

// clip bounds what an error repeats of a peer's bytes.
func clip(s string) string {
	const most = 64
	return cutText(s, most)
}

// appendMessage appends m's control-frame payload: its members after "type".
func appendMessage(b []byte, m Message) ([]byte, error) {
	body, err := json.Marshal(m, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, &EncodeError{Type: m.MessageType(), Err: err}
	}
	b = append(b, `{"type":"`...)
	b = append(b, m.MessageType()...)
	b = append(b, '"')
	if len(body) > len(`{}`) {
		b = append(b, ',')
	}
	return append(b, body[1:]...), nil
}

// Marshal returns m as the payload of a control frame, or an [EncodeError].
func Marshal(m Message) ([]byte, error) { return appendMessage(nil, m) }
