package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"
)

// TestMain lets the test binary be a proxy, as the benchmark's program can be.
func TestMain(m *testing.M) {
	if server := os.Getenv(relayEnv); server != "" {
		if err := serveRelay(server, 0, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// through returns both ends of a connection through a proxy.
func through(t *testing.T, n network) (client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := startProxy(listener.Addr().String(), n)
	t.Cleanup(func() { _ = p.close() })
	if client, err = net.Dial("tcp", p.addr); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

func TestProxyKeepsOrder(t *testing.T) {
	client, server := through(t, network{roundTrip: time.Millisecond})
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 8<<20) // more than the sockets hold
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	sent := make(chan error, 1)
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(20_000))
			if _, err := client.Write(rest[:n]); err != nil {
				sent <- err
				return
			}
			rest = rest[n:]
		}
		sent <- nil
	}()
	if err := <-sent; err != nil { // the proxy keeps the bytes until the server reads them
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(server, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes came in another order")
	}
}

func TestProxyDelaysBothDirections(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	client, server := through(t, network{roundTrip: roundTrip})
	go func() { _, _ = io.Copy(server, server) }()
	for range 5 {
		begin := time.Now()
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < roundTrip*99/100 { // a chunk may go a little early; see grain
			t.Fatalf("took %v, want about %v or longer", took, roundTrip)
		}
	}
}

func TestProxyCloses(t *testing.T) {
	client, server := through(t, network{roundTrip: time.Millisecond})
	if _, err := client.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	got, err := io.ReadAll(server)
	if err != nil || string(got) != "last words" {
		t.Errorf("got %q, %v", got, err)
	}
}
