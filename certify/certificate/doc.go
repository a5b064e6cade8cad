// Package certificate makes and checks certificates: signed statements that this
// worker, with these libraries and this artifact, passed this suite on a machine
// of this kind.
//
// A certificate is an in-toto statement in a DSSE envelope, signed with Ed25519.
// Its subjects are the files that it is about, by digest; its predicate holds
// every figure and verdict. [Verify] refuses one that is not signed by a trusted
// key, or whose subjects, system version or instruction-set class are not those
// that are here: int8 kernels differ between instruction sets, and Core ML
// between versions of the system.
package certificate
