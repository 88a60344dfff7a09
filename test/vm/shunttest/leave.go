// SPDX-License-Identifier: GPL-2.0

// Leaving the ring alive: kTLS takes a joined socket over. Comparisons with
// plain TCP: the bytes that were in the ring come out first, then the records.
// Neighbours: env.go, ops.go.
package main

import (
	"golang.org/x/sys/unix"
)

func init() {
	diff("leave/ktls", func(e *Env) { ktls(e, 0) })
	diff("leave/ktls-unread", func(e *Env) { ktls(e, 3000) })
	diff("leave/ktls-one-end", ktlsOneEnd)
	diff("leave/ktls-reader-asleep", ktlsReaderAsleep)
	diff("leave/unknown-ulp", unknownULP)
}

const (
	solTLS = 282
	tlsTX  = 1
	tlsRX  = 2
)

func (e *Env) ulp(fd int, name string) {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP, name)
	e.rec("%s ulp %q: %s", e.nameOf(fd), name, errName(err))
}

// tlsKey gives fd a fixed AES-GCM-128 key for TLS 1.2: no handshake.
func (e *Env) tlsKey(fd, direction int) {
	info := make([]byte, 40) // struct tls12_crypto_info_aes_gcm_128
	copy(info, []byte{0x03, 0x03, 51, 0})
	copy(info[4:], "iv-iv-ivkey-key-key-key-salt")
	err := unix.SetsockoptString(fd, solTLS, direction, string(info))
	e.rec("%s key: %s", e.nameOf(fd), errName(err))
}

// ktls hands both ends over while unread bytes are on their way to the server.
func ktls(e *Env, unread int) {
	c, s := e.pair()
	e.send(c, pattern(1, 100), 0)
	e.recvN(s, 100)
	if unread > 0 {
		e.send(c, pattern(2, unread), 0)
	}
	e.settle()
	e.ulp(c, "tls")
	e.ulp(s, "tls")
	if unread > 0 {
		e.recvN(s, unread)
	}
	e.tlsKey(c, tlsTX)
	e.tlsKey(s, tlsRX)
	w := e.later("writer", func() string { return errName(writeAll(c, pattern(3, 200000))) })
	e.recvN(s, 200000)
	w.wait()
	e.send(s, pattern(4, 500), 0) // the other way stays clear text
	e.recvN(c, 500)
}

// ktlsOneEnd: one end goes, the other still reads what the ring holds.
func ktlsOneEnd(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 2000), 0)
	e.send(s, pattern(2, 1000), 0)
	e.settle()
	e.ulp(c, "tls")
	e.send(c, pattern(3, 700), 0)
	e.send(s, pattern(4, 600), 0)
	e.recvN(s, 2700)
	e.recvN(c, 1600)
	for i := 0; i < 20; i++ {
		e.send(c, pattern(byte(5+i), 50), 0)
		e.recvN(s, 50)
		e.send(s, pattern(byte(6+i), 60), 0)
		e.recvN(c, 60)
	}
}

// ktlsReaderAsleep: a thread sleeps in recv() while the socket leaves.
func ktlsReaderAsleep(e *Env) {
	c, s := e.pair()
	r := e.later("reader", func() string {
		buf := make([]byte, 100)
		n, err := unix.Read(s, buf)
		return string(buf[:max(n, 0)]) + errName(err)
	})
	r.waiting()
	e.ulp(s, "tls")
	e.send(c, []byte("hello"), 0)
	r.wait()
	e.send(s, []byte("world"), 0)
	e.recvN(c, 5)
}

func unknownULP(e *Env) {
	c, s := e.pair()
	e.ulp(c, "no-such-ulp")
	e.ulp(c, "")
	e.send(c, pattern(1, 100), 0)
	e.recvN(s, 100)
	e.send(s, pattern(1, 100), 0)
	e.recvN(c, 100)
}
