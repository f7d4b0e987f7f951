#!/usr/bin/env python3
"""Traffic for scripts/make-demo-capture.sh: a server, a client, and a device that tags what a TAP sends."""

import argparse
import ctypes
import fcntl
import os
import select
import socket
import struct
import threading

TCP_PORT, UDP_PORT = 8080, 9000


def body(n):
    """n bytes that are the same on every run and do not compress to one value."""
    return bytes((i * 7 + i // 251) & 0xFF for i in range(n))


def read_head(conn):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = conn.recv(1)
        if not byte:
            raise EOFError("connection closed inside the request")
        head += byte
    return head.decode()


def read_exact(conn, n):
    data = b""
    while len(data) < n:
        part = conn.recv(65536)
        if not part:
            raise EOFError(f"{len(data)} of {n} bytes")
        data += part
    return data


def serve_http(listener):
    while True:
        conn, _ = listener.accept()
        with conn:
            verb, path, _ = read_head(conn).split("\r\n")[0].split(" ")
            n = int(path[1:])
            if verb == "GET":
                conn.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % n + body(n))
            else:
                assert read_exact(conn, n) == body(n)
                conn.sendall(b"HTTP/1.0 204 No Content\r\n\r\n")
            conn.shutdown(socket.SHUT_WR)
            conn.recv(1)  # the client's FIN


def serve_echo(sock):
    while True:
        data, peer = sock.recvfrom(65536)
        sock.sendto(data, peer)


def server():
    threads = []
    for family, any_ in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        tcp = socket.socket(family, socket.SOCK_STREAM)
        udp = socket.socket(family, socket.SOCK_DGRAM)
        for s in (tcp, udp):
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        tcp.bind((any_, TCP_PORT))
        tcp.listen()
        udp.bind((any_, UDP_PORT))
        threads += [threading.Thread(target=serve_http, args=(tcp,)), threading.Thread(target=serve_echo, args=(udp,))]
    for t in threads:
        t.start()
    print("ready", flush=True)


def client(host, get, put, datagrams):
    socket.setdefaulttimeout(10)
    for verb, n in (("GET", get), ("PUT", put)):
        if n == 0:
            continue
        with socket.create_connection((host, TCP_PORT)) as conn:
            conn.sendall(f"{verb} /{n} HTTP/1.0\r\nHost: demo\r\n\r\n".encode())
            if verb == "PUT":
                conn.sendall(body(n))
            reply = b""
            while part := conn.recv(65536):
                reply += part
            assert reply.startswith(b"HTTP/1.0 20"), reply[:40]
            assert verb == "PUT" or reply.endswith(body(n))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((host, UDP_PORT))
        for i in range(datagrams):
            data = body(8 + i * 37 % 500)
            sock.send(data)
            assert sock.recv(65536) == data


def tagger(wire, tap, vlan, mac):
    """A TAP whose frames go out of `wire` with an 802.1Q tag, and the way back."""
    TUNSETIFF, IFF_TAP, IFF_NO_PI, SIOCSIFHWADDR = 0x400454CA, 0x0002, 0x1000, 0x8924
    SOL_PACKET, PACKET_AUXDATA, PACKET_OUTGOING = 263, 8, 4
    TP_STATUS_VLAN_VALID = 1 << 4
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", tap.encode(), IFF_TAP | IFF_NO_PI))
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    sock.bind((wire, 0x0003))
    hwaddr = bytes.fromhex(mac.replace(":", ""))
    fcntl.ioctl(sock, SIOCSIFHWADDR, struct.pack("16sH14s8x", tap.encode(), 1, hwaddr))
    # The wire hears only its own address unless told otherwise (struct packet_mreq, PACKET_MR_PROMISC).
    index = socket.if_nametoindex(wire)
    sock.setsockopt(SOL_PACKET, 1, struct.pack("iHH8s", index, 1, 0, b""))
    print("ready", flush=True)
    tag = struct.pack("!HH", 0x8100, vlan)
    while True:
        for ready in select.select([fd, sock], [], [])[0]:
            if ready == fd:
                frame = os.read(fd, 65536)
                try:
                    sock.send(frame[:12] + tag + frame[12:])
                except OSError:
                    pass  # the wire is down: a lost frame
                continue
            # The kernel takes the tag off a received frame and tells it aside (struct tpacket_auxdata).
            frame, aux, _, peer = sock.recvmsg(65536, 256)
            if peer[2] == PACKET_OUTGOING:
                continue
            for level, kind, data in aux:
                if level == SOL_PACKET and kind == PACKET_AUXDATA:
                    status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", data[:20])
                    if status & TP_STATUS_VLAN_VALID and tci & 0xFFF == vlan:
                        os.write(fd, frame)


def main():
    # No traffic generator outlives the script that started it.
    ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM
    p = argparse.ArgumentParser(description=__doc__)
    sub = p.add_subparsers(dest="role", required=True)
    sub.add_parser("server")
    c = sub.add_parser("client")
    c.add_argument("host")
    for name in ("get", "put", "datagrams"):
        c.add_argument("--" + name, type=int, default=0)
    t = sub.add_parser("tagger")
    t.add_argument("wire")
    t.add_argument("tap")
    t.add_argument("vlan", type=int)
    t.add_argument("mac")
    a = p.parse_args()
    if a.role == "server":
        server()
    elif a.role == "client":
        client(a.host, a.get, a.put, a.datagrams)
    else:
        tagger(a.wire, a.tap, a.vlan, a.mac)


if __name__ == "__main__":
    main()
