package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A pod is a service that this process runs, and that SIGTERM ends.
type pod struct {
	url     string
	drained chan struct{} // when it is closed, no proxy sends requests any more
	events  chan ratelimit.Event
	ended   chan error
}

func (p pod) Observe(_ context.Context, e ratelimit.Event) { p.events <- e }

func start(t *testing.T, o *redis.Options, work http.Handler) pod {
	t.Helper()
	p := pod{drained: make(chan struct{}), events: make(chan ratelimit.Event, 100), ended: make(chan error, 1)}
	s, err := newService(t.Context(), redis.NewClient(o), 1, p)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + listener.Addr().String()
	s.drain = func() { <-p.drained }
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	t.Cleanup(stop)
	go func() { p.ended <- s.serve(ctx, listener, work) }()
	return p
}

// status sends a request on a connection of its own. A refused connection is 0.
func (p pod) status(method, path, body string) int {
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// terminate sends SIGTERM, as a kubelet does.
func terminate(t *testing.T) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// TestSIGTERM: readiness fails first, and new requests are served. Then the port closes, and requests that run finish. Redis has
// the charge of each request that counts, and no more.
func TestSIGTERM(t *testing.T) {
	server := redistest.Start(t)
	running, finish := make(chan struct{}, 2), make(chan struct{})
	p := start(t, &redis.Options{Addr: server.Addr()}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != "quick" {
			running <- struct{}{}
			<-finish
		}
		if string(body) == "fails" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	long := make(chan int, 2)
	for _, body := range []string{"long", "fails"} {
		go func() { long <- p.status("POST", "/v1/orders", body) }()
		<-running
	}
	if ready, alive := p.status("GET", "/readyz", ""), p.status("GET", "/healthz", ""); ready != 200 || alive != 200 {
		t.Errorf("got %d and %d, want a ready pod", ready, alive)
	}
	terminate(t)
	redistest.Until(t, "readiness fails", func() bool { return p.status("GET", "/readyz", "") == http.StatusServiceUnavailable })
	if alive, late := p.status("GET", "/healthz", ""), p.status("POST", "/v1/orders", "quick"); alive != 200 || late != 200 {
		t.Errorf("got %d and %d while proxies still send requests, want 200", alive, late)
	}
	close(p.drained)
	redistest.Until(t, "the port is closed", func() bool { return p.status("GET", "/readyz", "") == 0 })
	select {
	case err := <-p.ended:
		t.Fatalf("the pod ended with %v before its requests", err)
	default:
	}
	close(finish)
	if sum := <-long + <-long; sum != 200+500 {
		t.Errorf("got the sum %d of both statuses, want 200 and 500", sum)
	}
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
	close(p.events)
	seen := make(map[ratelimit.EventKind]int)
	for e := range p.events {
		seen[e.Kind]++
	}
	if seen[ratelimit.Settled] != 1 || seen[ratelimit.Unregistered] != 1 {
		t.Errorf("got events %v, want the refund, and the end of the middleware", seen)
	}
	limiter, err := shared.New(server.Client(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = limiter.Close() }()
	checks := []algorithms.Check{{Policy: "api", Key: "ip=127.0.0.1", Limit: algorithms.TokenBucket(600, time.Hour)}}
	if err := limiter.Allow(t.Context(), checks); err != nil || checks[0].Decision.Remaining != 598 {
		t.Errorf("got %+v and error %v, want two units charged", checks[0].Decision, err)
	}
}

// TestInstancesLeave: a pod that has ended takes no share.
func TestInstancesLeave(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client()
	p := start(t, &redis.Options{Addr: server.Addr()}, http.NotFoundHandler())
	pods := func() int64 {
		n, err := rdb.ZCard(t.Context(), "penstock:{instances}").Result()
		if err != nil {
			t.Error(err)
		}
		return n
	}
	redistest.Until(t, "the pod has announced itself", func() bool { return pods() == 1 })
	terminate(t)
	close(p.drained)
	if err := <-p.ended; err != nil || pods() != 0 {
		t.Errorf("got %d instances and error %v, want none", pods(), err)
	}
}

// TestWithoutRedis: a pod starts and stays ready, because an outage of Redis must not be one of the service. A wrong password ends it.
func TestWithoutRedis(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	if _, err := newService(t.Context(), redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "wrong"}), 3); err == nil {
		t.Error("got no error of a wrong password")
	}
	server.Kill()
	p := start(t, &redis.Options{Addr: server.Addr(), Password: "secret"}, http.NotFoundHandler())
	if ready, alive, served := p.status("GET", "/readyz", ""), p.status("GET", "/healthz", ""), p.status("POST", "/v1/orders", ""); ready != 200 || alive != 200 || served != 404 {
		t.Errorf("got %d, %d and %d, want a pod that serves", ready, alive, served)
	}
	terminate(t)
	close(p.drained)
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// TestDeployment: the times of deployment.yaml fit those of the program.
func TestDeployment(t *testing.T) {
	text, err := os.ReadFile("deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(pattern string) (product time.Duration) {
		product = time.Second
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("deployment.yaml has no %s", pattern)
		}
		for _, number := range found[1:] {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			product *= time.Duration(n)
		}
		return product
	}
	if grace := seconds(`terminationGracePeriodSeconds: (\d+)`); grace < drainTime+requestTime+5*time.Second {
		t.Errorf("got %v, want the time of draining and of requests, and 5 s", grace)
	}
	if fails := seconds(`readinessProbe:[^{]*\{path: /readyz, port: http\}\s+periodSeconds: (\d+)\s+failureThreshold: (\d+)`); fails > drainTime/2 {
		t.Errorf("readiness fails after %v, want half of %v at most, so that proxies learn it", fails, drainTime)
	}
	if starts := seconds(`startupProbe:[^{]*\{path: /readyz, port: http\}\s+periodSeconds: (\d+)\s+failureThreshold: (\d+)`); starts < 10*time.Second {
		t.Errorf("the pod has %v to start, want time for Ready and for a dial", starts)
	}
	seconds(`livenessProbe:[^{]*\{path: /healthz, port: http\}\s+periodSeconds: (\d+)`)
}
