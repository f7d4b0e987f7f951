//! What kernel-socket drivers share: interface requests, network namespaces, packet sockets.
