package workerkit

import (
	"context"
	"errors"
	"log/slog"

	"github.com/synapse-module/workers/protocol"
)

// server is a connected worker. One goroutine runs its loop: requests are served
// one at a time, in order.
type server struct {
	in       *inbox
	out      *protocol.FrameWriter
	maxFrame uint32
	engine   Engine
	info     Info
	models   *registry
	store    *store
	log      *slog.Logger

	rows  [][]int32 // views into the request in hand, reused
	parts [][]byte  // views into the answer, reused
}

// answer is a reply and, where its type has one, the payload of its raw frame in
// pieces.
type answer struct {
	message protocol.Message
	raw     [][]byte
}

// handlers serve the requests of v1.
var handlers = map[protocol.Type]func(*server, context.Context, *request) (answer, error){
	protocol.TypeLoad:       (*server).load,
	protocol.TypeDescribe:   (*server).describe,
	protocol.TypeEmbedBatch: (*server).embed,
	protocol.TypeRerank:     (*server).rerank,
	protocol.TypeGenerate:   (*server).generate,
	protocol.TypeUnload:     (*server).unload,
	protocol.TypePing:       (*server).ping,
}

// loop serves until SHUTDOWN or the end of the stream, frees the models and
// returns nil, or returns what broke the stream. orphaned is called from another
// goroutine when the module is gone while a request is in hand; it must end the
// process.
func (s *server) loop(ctx context.Context, orphaned func(error)) error {
	go s.in.run(orphaned)
	defer s.models.closeAll(s.log)
	for {
		select {
		case r := <-s.in.requests:
			if r.header.Type == protocol.TypeShutdown {
				return nil
			}
			if err := s.serve(ctx, r); err != nil {
				return err
			}
			s.in.done(r)
		case err := <-s.in.ended:
			return err
		}
	}
}

// serve answers one request. Its error is the stream's, not the request's.
func (s *server) serve(ctx context.Context, r *request) error {
	a, err := s.dispatch(ctx, r)
	s.in.answering()
	if err == nil {
		err = s.send(a)
		var oversize *protocol.OversizeError
		var unsayable *protocol.EncodeError
		switch {
		case errors.As(err, &oversize):
			err = protocol.Errorf(protocol.CodeResponseTooLarge, "the answer does not fit: %v; ask for less at once", oversize)
		case errors.As(err, &unsayable):
			err = EngineFailed("the engine's answer is no JSON: %v", unsayable)
		default:
			return err
		}
	}
	var refusal *protocol.Error
	if !errors.As(err, &refusal) {
		refusal = protocol.Errorf(protocol.CodeEngineFailed, "%v", err)
	}
	s.log.Warn("request refused", "type", r.header.Type, "req_id", r.header.ReqID, "code", refusal.Code, "msg", refusal.Msg)
	return s.out.Write(protocol.Err{ReqID: r.header.ReqID, Code: refusal.Code, Msg: refusal.Msg})
}

func (s *server) dispatch(ctx context.Context, r *request) (answer, error) {
	if handle, ok := handlers[r.header.Type]; ok {
		return handle(s, ctx, r)
	}
	return answer{}, protocol.Errorf(protocol.CodeUnknownType, "%.64q is no request that this worker knows (protocol v%d)", string(r.header.Type), protocol.Version)
}

func (s *server) send(a answer) error {
	if a.raw == nil {
		return s.out.Write(a.message)
	}
	err := s.out.WriteRaw(a.message, a.raw...)
	clear(a.raw) // the engine's memory must not be held until the next answer
	return err
}

// model decodes nothing and finds everything: the model that a request names.
func (s *server) model(ref string) (*loaded, error) {
	if m := s.models.get(ref); m != nil {
		return m, nil
	}
	return nil, protocol.Errorf(protocol.CodeModelNotFound, "no model %.64q is loaded here; LOAD gives a model_ref, UNLOAD ends it", ref)
}

func (s *server) unload(_ context.Context, r *request) (answer, error) {
	var q protocol.Unload
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	m, err := s.model(q.ModelRef)
	if err != nil {
		return answer{}, err
	}
	s.models.remove(q.ModelRef)
	if err := m.close(); err != nil {
		return answer{}, EngineFailed("the model is gone, but freeing it failed: %v; recycle this worker", err)
	}
	return answer{message: protocol.Unloaded{ReqID: q.ReqID}}, nil
}

func (s *server) ping(_ context.Context, r *request) (answer, error) {
	var q protocol.Ping
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	rss, err := residentMiB()
	if err != nil {
		return answer{}, EngineFailed("resident memory cannot be read: %v", err)
	}
	return answer{message: protocol.Pong{ReqID: q.ReqID, RSSMB: rss, ModelsLoaded: s.models.len(), PlacementShare: s.models.placementShare()}}, nil
}

func (s *server) describe(_ context.Context, r *request) (answer, error) {
	var q protocol.Describe
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	m, err := s.model(q.ModelRef)
	if err != nil {
		return answer{}, err
	}
	d := protocol.Description{
		ReqID: q.ReqID, Engine: wireEngine(s.info), Arch: m.desc.Arch, Dims: m.desc.Dims,
		MaxTokens: m.desc.MaxTokens, VocabSize: m.desc.VocabSize, Pooling: []string{},
		DefaultPooling: string(m.desc.DefaultPooling), Config: m.config.JSON(), Placement: m.desc.Placement,
		Rerank: m.reranker != nil, Generate: m.generator != nil, Grammar: m.desc.Grammar,
	}
	for _, p := range m.desc.Poolings {
		d.Pooling = append(d.Pooling, string(p))
	}
	return answer{message: d}, nil
}
