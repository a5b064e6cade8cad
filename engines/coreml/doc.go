// Package coreml is the engine over Apple's Core ML: encoders and cross-encoders
// on the Neural Engine.
//
// # Artifacts
//
// A .mlpackage is compiled on the machine that serves it, once, and kept by its
// digest in the cache directory; a .mlmodelc is kept there as it is. Either may
// be a directory of several, one a bucket. What Core ML does not describe
// (vocabulary, pooling, pair layout, golden rows) stands in the package's
// user-defined metadata under "synapse." names; docs/placement.md lists them.
//
// # Buckets
//
// The Neural Engine runs fixed shapes. Each shape that an artifact has, as a
// function, an enumerated shape or a package of its own, is a bucket of so many
// rows of so many tokens. A request is split over the buckets so that the least
// padding is computed; its order is kept.
//
// # Placement
//
// At LOAD the compute plan of every bucket is read and summed: which share of the
// operations Core ML means to run on the Neural Engine. It is a plan, not a
// measurement.
//
// GENERATE is not served: workerkit answers unsupported.
package coreml
