//go:build !linux && !windows

package protocol

// maxSocketPath is sizeof(sockaddr_un.sun_path) on the BSDs and macOS, 104, less
// the NUL (sys/un.h).
const maxSocketPath = 103
