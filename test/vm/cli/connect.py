#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes a connection with both ends in the test's cgroup, sends both ways and
checks what comes.

connect.py [--server-outside | --client-outside | --nowhere] [--from ADDRESS]
           [--repeat N] [--hold SECONDS] ADDRESS PORT

Outside is the root cgroup. Neighbours: cli (the tests).
"""
import argparse
import os
import socket
import time

ROUNDS = 20


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--server-outside", action="store_true")
    p.add_argument("--client-outside", action="store_true")
    p.add_argument("--nowhere", action="store_true")
    p.add_argument("--from", dest="source")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--hold", type=float, default=0)
    p.add_argument("address")
    p.add_argument("port", type=int)
    return p.parse_args()


def enter(group):
    with open(f"/sys/fs/cgroup/{group}/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))


def listener(a):
    family = socket.AF_INET6 if ":" in a.address else socket.AF_INET
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::" if family == socket.AF_INET6 else "", a.port))
    s.listen(128)
    return s


def receive(s, want):
    got = b""
    while len(got) < len(want):
        more = s.recv(len(want) - len(got))
        assert more, "the end came early"
        got += more
    assert got == want, "other bytes came than were sent"


def exchange(client, server):
    for i in range(ROUNDS):
        message = bytes([i]) * (100 * i + 1)
        client.sendall(message)
        receive(server, message)
        server.sendall(message)
        receive(client, message)


def connection(a, listening):
    source = (a.source, 0) if a.source else None
    client = socket.create_connection((a.address, a.port), timeout=20, source_address=source)
    server, _ = listening.accept()
    server.settimeout(20)
    exchange(client, server)
    if a.hold:
        time.sleep(a.hold)
        exchange(client, server)
    client.close()
    assert server.recv(1) == b"", "no end after close"
    server.close()


def main():
    a = arguments()
    enter("" if a.server_outside or a.nowhere else "t")
    listening = listener(a)
    enter("" if a.client_outside or a.nowhere else "t")
    for _ in range(a.repeat):
        connection(a, listening)


main()
