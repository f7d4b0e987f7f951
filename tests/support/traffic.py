"""Traffic of one network namespace, for the end-to-end tests. Each command ends by itself and prints what it counted."""

import hashlib
import os
import random
import socket
import struct
import sys
import threading

WAIT = 100  # seconds without progress before a socket gives up
CHUNK = 1 << 20
ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID = 0x10
SO_RCVBUFFORCE = 33


def say(*words):
    """One line by one write: two threads say things at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def send_all(sock, n_bytes, seed):
    """Sends bytes that the seed gives, and prints how many and their hash."""
    source, digest, left = random.Random(seed), hashlib.sha256(), n_bytes
    while left:
        data = source.randbytes(min(CHUNK, left))
        digest.update(data)
        sock.sendall(data)
        left -= len(data)
    sock.shutdown(socket.SHUT_WR)
    say("sent", n_bytes, digest.hexdigest())


def receive_all(sock):
    digest, n_bytes = hashlib.sha256(), 0
    while data := sock.recv(CHUNK):
        if not n_bytes:
            say("first")
        digest.update(data)
        n_bytes += len(data)
    say("received", n_bytes, digest.hexdigest())


def both_ways(sock, n_bytes, seed):
    sock.settimeout(WAIT)
    sender = threading.Thread(target=send_all, args=(sock, n_bytes, seed), daemon=True)
    sender.start()
    receive_all(sock)
    sender.join(WAIT)


def family(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def tcp_serve(addr, port, n_bytes, seed):
    with socket.create_server((addr, int(port)), family=family(addr)) as server:
        server.settimeout(WAIT)
        say("ready")
        both_ways(server.accept()[0], int(n_bytes), int(seed))


def tcp_connect(addr, port, n_bytes, seed):
    both_ways(socket.create_connection((addr, int(port)), WAIT), int(n_bytes), int(seed))


def datagram(i, size):
    return random.Random(i).randbytes(size)


WINDOW = 10  # datagrams on their way at most


def udp_serve(addr, port, count, size):
    sock = socket.socket(family(addr), socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    sock.bind((addr, int(port)))
    sock.settimeout(20)
    say("ready")
    good = 0
    for i in range(int(count)):
        data, peer = sock.recvfrom(1 << 16)
        good += data == datagram(i, int(size))
        if i % WINDOW == WINDOW - 1:
            sock.sendto(b"more", peer)
    say("good", good)


def udp_send(addr, port, count, size):
    sock = socket.socket(family(addr), socket.SOCK_DGRAM)
    # Never fragment: what is too long for the way is refused here.
    if family(addr) == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, 10, 2)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, 23, 2)
    sock.settimeout(20)
    for i in range(int(count)):
        sock.sendto(datagram(i, int(size)), (addr, int(port)))
        if i % WINDOW == WINDOW - 1:
            sock.recv(16)


def tagged(i, vid):
    head = b"\x02\xbb\0\0\0\2\x02\xaa\0\0\0\1" + struct.pack("!HHH", 0x8100, 5 << 13 | vid, 0x88B5)
    return head + random.Random(i).randbytes(46 + i * 29)


def vlan_send(interface, count, vid):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind((interface, 0))
    for i in range(int(count)):
        sock.send(tagged(i, int(vid)))


def vlan_receive(interface, count, vid):
    """The kernel takes the tag out of the data and tells it beside them."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.bind((interface, 0))
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    sock.settimeout(20)
    say("ready")
    good = 0
    while good < int(count):
        data, extra, _, peer = sock.recvmsg(1 << 16, 256)
        if peer[2] == socket.PACKET_OUTGOING:
            continue
        for level, kind, aux in extra:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", aux[:20])
                if status & TP_STATUS_VLAN_VALID:
                    data = data[:12] + struct.pack("!HH", tpid or 0x8100, tci) + data[12:]
        good += data == tagged(good, int(vid))
    say("good", good)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
