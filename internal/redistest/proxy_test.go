package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A visitor talks to a server through a proxy. Unlike a client, it sends no commands of its own.
type visitor struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func visit(t *testing.T, p *Proxy) *visitor {
	t.Helper()
	conn, err := net.DialTimeout("tcp", p.Addr(), deadline)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &visitor{t, conn, bufio.NewReader(conn)}
}

func (v *visitor) send(line string) {
	v.t.Helper()
	if _, err := v.conn.Write([]byte(line + "\r\n")); err != nil {
		v.t.Fatalf("%s: %v", line, err)
	}
}

// receive waits for a line up to d.
func (v *visitor) receive(d time.Duration) (string, error) {
	_ = v.conn.SetReadDeadline(time.Now().Add(d))
	line, err := v.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (v *visitor) wantReply(line, want string) {
	v.t.Helper()
	v.send(line)
	if got, err := v.receive(deadline); got != want || err != nil {
		v.t.Errorf("%s: got %q, %v; want %q", line, got, err, want)
	}
}

// wantSilence waits as long as a reply would take without a fault.
func (v *visitor) wantSilence(line string) {
	v.t.Helper()
	v.send(line)
	if got, err := v.receive(50 * time.Millisecond); !isTimeout(err) {
		v.t.Errorf("%s: got %q, %v; want no answer", line, got, err)
	}
}

func (v *visitor) wantEnd() {
	v.t.Helper()
	if got, err := v.receive(deadline); err != io.EOF {
		v.t.Errorf("got %q, %v; want the end of the stream", got, err)
	}
}

func isTimeout(err error) bool {
	timeout := net.Error(nil)
	return errors.As(err, &timeout) && timeout.Timeout()
}

func wantKey(t *testing.T, s *Server, want string) {
	t.Helper()
	Until(t, "k is "+want, func() bool { return s.Client().Get(t.Context(), "k").Val() == want })
}

func TestProxyPassesAndCounts(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	first, second := visit(t, p), visit(t, p)
	first.wantReply("INCR k", ":1")
	second.wantReply("INCR k", ":2")
	second.wantReply("INCR k", ":3")
	if got := p.Struck(); got != 0 {
		t.Errorf("got %d struck, want none", got)
	}
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer client.Close()
	big := strings.Repeat("x", 1<<20)
	if err := client.Set(t.Context(), "k", big, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Get(t.Context(), "k").Result(); got != big || err != nil {
		t.Errorf("GET: got %d bytes, %v; want %d", len(got), err, len(big))
	}
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	v := visit(t, p)
	const late = 60 * time.Millisecond
	p.Set(Delay(late))
	began := time.Now()
	v.wantReply("INCR k", ":1")
	if took := time.Since(began); took < late {
		t.Errorf("the reply took %v, want %v at least", took, late)
	}
	p.Set(Delay(time.Hour))
	v.wantSilence("INCR k")
	wantKey(t, s, "2")
	p.Set(Pass())
	visit(t, p).wantReply("INCR k", ":3")
}

func TestProxyTrickles(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	v := visit(t, p)
	p.Set(Trickle(100))
	began := time.Now()
	v.wantReply("PING", "+PONG")
	if took := time.Since(began); took < 70*time.Millisecond {
		t.Errorf("the 7 bytes took %v, want 70ms at least", took)
	}
	p.Set(Trickle(0)) // is 1: the first byte comes after a second
	v.wantSilence("PING")
}

func TestProxySwallows(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	v := visit(t, p)
	p.Set(Swallow())
	v.wantSilence("INCR k")
	wantKey(t, s, "1")
	p.Set(Pass())
	v.wantSilence("INCR k") // otherwise its reply would be taken for the lost one
	wantKey(t, s, "2")
	visit(t, p).wantReply("INCR k", ":3")
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	v := visit(t, p)
	p.Set(Cut())
	v.send("INCR k")
	v.wantEnd()
	wantKey(t, s, "1")
	p.Set(Pass())
	visit(t, p).wantReply("INCR k", ":2")
}

func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	v := visit(t, p)
	v.wantReply("PING", "+PONG")
	for range 2 {
		p.Set(Refuse())
		v.wantEnd()
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want a refusal", err)
		}
		p.Set(Pass())
		v = visit(t, p)
		v.wantReply("PING", "+PONG")
	}
}

// TestProxyRefusesWhileProcessesStart starts processes, which share the listener for a moment.
func TestProxyRefusesWhileProcessesStart(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, "127.0.0.1:1")
	done := make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(done)
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	for range 300 {
		p.Set(Refuse())
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v, want a refusal", err)
		}
		p.Set(Pass())
		visit(t, p)
	}
}

func TestProxyIsABlackHole(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	v := visit(t, p)
	v.wantReply("INCR k", ":1")
	p.Set(BlackHole())
	v.wantSilence("INCR k")
	visit(t, p).wantSilence("INCR k")
	p.Set(Pass())
	v.wantSilence("INCR k")
	wantKey(t, s, "1")
	if got := p.Struck(); got != 2 {
		t.Errorf("got %d struck, want 2", got)
	}
}

func TestProxyIsUnreachable(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	v := visit(t, p)
	for range 2 {
		v.wantReply("PING", "+PONG")
		p.Set(Unreachable())
		v.wantSilence("PING")
		if _, err := net.DialTimeout("tcp", p.Addr(), 50*time.Millisecond); !isTimeout(err) {
			t.Errorf("got %v, want a timeout of the dial", err)
		}
		p.Set(Pass())
		v = visit(t, p)
	}
}

func TestProxyStrikesTheRequestsNamed(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	defer client.Close()
	sha := client.ScriptLoad(t.Context(), "return redis.call('INCR', KEYS[1])").Val()
	p.Set(Cut().Containing("EvalSHA"))
	for range 2 {
		if err := client.EvalSha(t.Context(), sha, []string{"k"}).Err(); err != io.EOF {
			t.Errorf("got %v, want %v", err, io.EOF)
		}
	}
	if got := client.Get(t.Context(), "k").Val(); got != "2" {
		t.Errorf("k is %s, want 2: each call once", got)
	}
	p.Set(BlackHole().Containing("ping"))
	visit(t, p).wantSilence("PING")
}

func TestProxyWithoutATarget(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	v := visit(t, p)
	v.wantReply("PING", "+PONG")
	s.Kill()
	v.wantEnd()
	v = visit(t, p)
	v.send("PING")
	v.wantEnd()
	s.Restart()
	visit(t, p).wantReply("PING", "+PONG")
}

// TestProxyCloses closes a proxy while it is busy with each fault. TestMain checks that no goroutine is left.
func TestProxyCloses(t *testing.T) {
	t.Parallel()
	s := Start(t)
	for _, f := range []Fault{
		Pass(), Delay(time.Hour), Trickle(1), Swallow(), BlackHole(), Unreachable(), Refuse(),
	} {
		p := StartProxy(t, s.Addr())
		v := visit(t, p)
		v.wantReply("PING", "+PONG")
		p.Set(f)
		_, _ = v.conn.Write([]byte("PING\r\n"))
		p.Close()
		p.Close() // twice does no harm
		if _, err := io.Copy(io.Discard, v.conn); isTimeout(err) {
			t.Errorf("%+v: the connection has not ended", f)
		}
		p.Set(Pass())
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%+v: got %v from a closed proxy, want a refusal", f, err)
		}
	}
}

// TestProxyIsForManyGoroutines changes the fault while clients call.
func TestProxyIsForManyGoroutines(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				conn, err := net.DialTimeout("tcp", p.Addr(), 20*time.Millisecond)
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(20 * time.Millisecond))
				_, _ = conn.Write([]byte("PING\r\n"))
				_, _ = conn.Read(make([]byte, 7))
				_ = conn.Close()
				_ = p.Struck()
			}
		})
	}
	for range 2 {
		group.Go(func() {
			for range 10 {
				for _, f := range []Fault{Cut(), Refuse(), Swallow().Containing("ping"), Unreachable(), BlackHole(), Trickle(1000), Pass()} {
					p.Set(f)
				}
			}
		})
	}
	group.Wait()
	p.Set(Pass())
	visit(t, p).wantReply("PING", "+PONG")
}
