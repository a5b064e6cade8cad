package protocol

// maxSocketPath is the longest pipe name, \\.\pipe\ included (CreateNamedPipe).
const maxSocketPath = 256
