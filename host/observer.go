package host

import "context"

// RequestInfo is what an [Observer] is told of a request.
type RequestInfo struct {
	Worker string // the worker's id
	PID    int
	Engine string // the engine's name
	Stage  Stage
	Model  string // digest; empty where the request is for none
	Rows   int    // rows of an embedding, candidates of a reranking, else 0
	Tokens int    // token ids sent
}

// Observer sees requests begin and end. Package metrics has some; a worker without
// one pays nothing.
type Observer interface {
	// Begin is called when a request is made, before it waits for the lane; what it
	// returns is called once, with the request's error.
	Begin(ctx context.Context, r RequestInfo) (end func(error))
}

// observe tells the observers of a request.
func (w *Worker) observe(c *call, rows, tokens int) (end func(error)) {
	if len(w.spec.Observers) == 0 {
		return func(error) {}
	}
	r := RequestInfo{
		Worker: w.spec.ID, PID: w.PID(), Engine: w.hello.Engine.Name,
		Stage: c.stage, Model: c.model.digest, Rows: rows, Tokens: tokens,
	}
	ends := make([]func(error), len(w.spec.Observers))
	for i, o := range w.spec.Observers {
		ends[i] = o.Begin(c.ctx, r)
	}
	return func(err error) {
		for _, end := range ends {
			end(err)
		}
	}
}
