// Package suite reads certification suites: a folder with suite.yaml, the inputs
// of a model as token ids, and the fp32 vectors that an independent
// implementation gave for exactly these ids.
//
// suite.schema.json is the one description of suite.yaml; what it refuses is
// told with file, line and field. Inputs and vectors are held to the digests in
// their provenance before anything is measured against them.
package suite
