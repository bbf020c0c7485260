import os
import socket
import subprocess

import pytest

from trunkline_gateway import peers


@pytest.mark.parametrize(
    ("address", "own", "local"),
    [
        (("127.0.0.1", 5), ("127.0.0.1", 30086), True),
        (("127.0.0.9", 5), ("127.0.0.1", 30086), True),
        (("::1", 5, 0, 0), ("::1", 30086, 0, 0), True),
        (("::ffff:127.0.0.1", 5, 0, 0), ("::ffff:127.0.0.1", 30086, 0, 0), True),
        (("192.0.2.7", 5), ("192.0.2.7", 30086), True),
        (("192.0.2.8", 5), ("192.0.2.7", 30086), False),
        (("2001:db8::1", 5, 0, 0), ("2001:db8::2", 30086, 0, 0), False),
    ],
)
def test_who_is_on_this_host(address: tuple[object, ...], own: tuple[object, ...], local: bool) -> None:
    assert peers.of_tcp(address, own).local is local


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_process_behind_a_connection(family: socket.AddressFamily) -> None:
    with socket.socket(family) as server:
        if family == socket.AF_INET6:
            # One socket for both families: the client's end is IPv4, ours is mapped.
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::" if family == socket.AF_INET6 else "127.0.0.1", 0))
        server.listen()
        with socket.create_connection(("127.0.0.1", server.getsockname()[1])) as client:
            accepted, address = server.accept()
            with accepted:
                peer = peers.of_tcp(address, accepted.getsockname())
                assert peer.local
                assert peers.find_pid(peer) == os.getpid()
                assert client.getsockname()[0] == "127.0.0.1"


def test_a_connection_that_another_process_took_over_is_that_ones() -> None:
    """What was found once counts only while that process still holds the connection."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client = socket.create_connection(("127.0.0.1", server.getsockname()[1]))
        accepted, address = server.accept()
        with accepted:
            peer = peers.of_tcp(address, accepted.getsockname())
            assert peers.find_pid(peer) == peers.find_pid(peer) == os.getpid()
            heir = subprocess.Popen(["sleep", "60"], stdin=client.fileno())
            try:
                client.close()
                assert peers.find_pid(peer) == heir.pid
            finally:
                heir.kill()
                heir.wait()


def test_a_unix_peer_by_the_kernels_word() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        peer = peers.of_unix(ours)
        assert (peer.pid, peer.uid, peer.local) == (os.getpid(), os.getuid(), True)


def test_a_process_that_is_gone_is_nobodys() -> None:
    assert peers.agent_reason(2**22 + 1, set()) is None
    assert peers.agent_reason(os.getpid(), {(os.getpid(), 1.0)}) is None
