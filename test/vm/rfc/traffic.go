// SPDX-License-Identifier: GPL-2.0

// The connections: half of them ask and answer, in the other half both ends
// send before either receives. Every byte is compared.
//
// Neighbours: main.go (calls this), counters.go (knows how much was sent).

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

const (
	rounds   = 8
	patience = 30 * time.Second
	// Both ends send this much before either reads: less than TCP buffers.
	maxMessage = 24 << 10
)

// sent counts the bytes sent by both ends.
var sent uint64

// makeTraffic returns how many bytes the connections carried.
func makeTraffic(connections int, seed uint64, mptcp bool) (uint64, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(mptcp)
	l, err := config.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	before := sent
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range connections {
		if err := oneConnection(l, random, i%2 == 1); err != nil {
			return 0, fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return sent - before, nil
}

func oneConnection(l net.Listener, random *rand.Rand, both bool) error {
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		return err
	}
	defer server.Close()
	for _, c := range []net.Conn{client, server} {
		c.SetDeadline(time.Now().Add(patience))
	}
	for range rounds {
		if err := oneRound(client, server, random, both); err != nil {
			return err
		}
	}
	return ends(client, server)
}

func oneRound(client, server net.Conn, random *rand.Rand, both bool) error {
	ask, answer := message(random), message(random)
	if !both {
		if err := transfer(client, server, ask); err != nil {
			return fmt.Errorf("asking: %w", err)
		}
		return transfer(server, client, answer)
	}
	if err := send(client, ask); err != nil {
		return err
	}
	if err := send(server, answer); err != nil {
		return err
	}
	if err := receive(server, ask); err != nil {
		return fmt.Errorf("the server's end: %w", err)
	}
	return receive(client, answer)
}

func message(random *rand.Rand) []byte {
	b := make([]byte, 1+random.IntN(maxMessage))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func transfer(from, to net.Conn, b []byte) error {
	if err := send(from, b); err != nil {
		return err
	}
	return receive(to, b)
}

func send(c net.Conn, b []byte) error {
	n, err := c.Write(b)
	sent += uint64(n)
	return err
}

func receive(c net.Conn, want []byte) error {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes came, but not those that were sent", len(got))
	}
	return nil
}

// ends checks that the end of the stream arrives as it does over TCP.
func ends(client, server net.Conn) error {
	client.Close()
	if n, err := server.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("after close: %d bytes and %v instead of the end", n, err)
	}
	return nil
}
