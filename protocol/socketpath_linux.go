package protocol

// maxSocketPath is sizeof(sockaddr_un.sun_path), 108, less the NUL (unix(7)).
const maxSocketPath = 107
