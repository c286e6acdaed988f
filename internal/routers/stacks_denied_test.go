// Each stack denies the third request, and says how long to wait.

package routers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/coder/websocket"
	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
	echo4 "github.com/labstack/echo/v4"
	"github.com/labstack/echo/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

var twoPerHour = algorithms.TokenBucket(2, time.Hour)

func twoEach(t *testing.T, edit func(*ratelimit.Policy)) *ratelimit.Middleware {
	p := ratelimit.Policy{Name: "api", Limit: twoPerHour}
	if edit != nil {
		edit(&p)
	}
	m, err := ratelimit.New(algorithms.NewMemory(nil), nil, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask sends a request, and returns the status and Retry-After.
func ask(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/orders/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	after := resp.Header.Get("Retry-After")
	if after != "" && after >= "1790" && after <= "1800" {
		after = "half an hour"
	}
	return fmt.Sprint(resp.StatusCode, " ", after)
}

func TestStacksOfHTTP(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	withGin, withEcho4, withEcho5 := gin.New(), echo4.New(), echo.New()
	ginStack(twoEach(t, nil), withGin)
	withGin.GET("/orders/:id", func(c *gin.Context) { c.String(200, "order") })
	echo4Stack(twoEach(t, nil), withEcho4)
	withEcho4.GET("/orders/:id", func(c echo4.Context) error { return c.String(200, "order") })
	echo5Stack(twoEach(t, nil), withEcho5)
	withEcho5.GET("/orders/:id", func(c *echo.Context) error { return c.String(200, "order") })
	for name, h := range map[string]http.Handler{
		"net/http": netHTTP(twoEach(t, nil)), "chi": chiStack(twoEach(t, nil)), "gorilla": gorillaStack(twoEach(t, nil)),
		"httprouter": httprouterStack(twoEach(t, nil)), "gin": withGin, "echo 4": withEcho4, "echo 5": withEcho5,
	} {
		server := httptest.NewServer(h)
		wantThird(t, name, server.URL)
		server.Close()
	}
}

func wantThird(t *testing.T, name, url string) {
	t.Helper()
	got := []string{ask(t, url), ask(t, url), ask(t, url)}
	if want := []string{"200 ", "200 ", "429 half an hour"}; !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

// Errors that handlers of echo return count under ChargeIf.
func TestReturnedErrors(t *testing.T) {
	failures := func(p *ratelimit.Policy) { p.ChargeIf = func(status int) bool { return status == 404 } }
	withEcho4, withEcho5 := echo4.New(), echo.New()
	echo4Stack(twoEach(t, failures), withEcho4)
	withEcho4.GET("/orders/:id", func(echo4.Context) error { return echo4.ErrNotFound })
	echo5Stack(twoEach(t, failures), withEcho5)
	withEcho5.GET("/orders/:id", func(*echo.Context) error { return echo.ErrNotFound })
	for name, h := range map[string]http.Handler{"echo 4": withEcho4, "echo 5": withEcho5} {
		server := httptest.NewServer(h)
		got := []string{ask(t, server.URL), ask(t, server.URL), ask(t, server.URL)}
		if want := []string{"404 ", "404 ", "429 half an hour"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		server.Close()
	}
}

// fiber's adaptor limits rates. It returns before the handler runs, so a Concurrent limit holds nothing, and a finding says so.
func TestFiber(t *testing.T) {
	serve := func(m *ratelimit.Middleware) string {
		app := fiber.New()
		fiberStack(m, app)
		app.Get("/orders/:id", func(c fiber.Ctx) error { return c.SendString("order") })
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
		t.Cleanup(func() { _ = app.Shutdown() })
		return "http://" + listener.Addr().String()
	}
	wantThird(t, "fiber", serve(twoEach(t, nil)))

	m := twoEach(t, func(p *ratelimit.Policy) { p.Limit = algorithms.Concurrent(1, 30*time.Second) })
	url := serve(m)
	for i := 0; i < 3_000 && len(m.Findings()) == 0; i++ {
		ask(t, url)
	}
	if got := findingCodes(m); !slices.Equal(got, []string{"PS112"}) {
		t.Errorf("got the findings %v of a Concurrent limit, want PS112", got)
	}
}

func TestGRPC(t *testing.T) {
	proxies := keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	server := grpcStack(ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{ClientIP: proxies}, ratelimit.Policy{Name: "p", Limit: twoPerHour})))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "orders", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Get",
		Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			return interceptor(ctx, new(emptypb.Empty), &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return new(emptypb.Empty), nil })
		},
	}}, Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, Handler: func(any, grpc.ServerStream) error { return nil }}}}, 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	watch := func() error {
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/orders/Watch")
		if err != nil {
			return err
		}
		_ = s.CloseSend() // RecvMsg has the error
		return s.RecvMsg(new(emptypb.Empty))
	}
	if err := conn.Invoke(t.Context(), "/orders/Get", new(emptypb.Empty), new(emptypb.Empty)); err != nil {
		t.Fatal(err)
	}
	if err := watch(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for kind, err := range map[string]error{
		"unary": conn.Invoke(t.Context(), "/orders/Get", new(emptypb.Empty), new(emptypb.Empty)), "stream": watch(),
	} {
		s := status.Convert(err)
		if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 || s.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration() < 29*time.Minute {
			t.Errorf("%s: got %v %v, want ResourceExhausted and half an hour", kind, s, s.Details())
		}
	}
	behind := metadata.AppendToOutgoingContext(t.Context(), "X-Forwarded-For", "203.0.113.9")
	if err := conn.Invoke(behind, "/orders/Get", new(emptypb.Empty), new(emptypb.Empty)); err != nil {
		t.Errorf("another client behind the proxy: got %v", err)
	}
}

func TestConnect(t *testing.T) {
	server := httptest.NewServer(connectStack(twoEach(t, nil)))
	defer server.Close()
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](http.DefaultClient, server.URL+"/orders.Orders/Get")
	for i := range 3 {
		_, err := client.CallUnary(t.Context(), connect.NewRequest(new(emptypb.Empty)))
		var refused *connect.Error
		if i < 2 && err != nil || i == 2 && (!errors.As(err, &refused) || refused.Code() != connect.CodeResourceExhausted || len(refused.Details()) != 1) {
			t.Errorf("call %d: got %v", i, err)
		}
	}
}

func TestWebSocket(t *testing.T) {
	messages, got := twoEach(t, nil), 0
	limited := twoEach(t, nil).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		serveMessages(r, conn, messages, func([]byte) { got++ })
	}))
	server := httptest.NewServer(limited)
	defer server.Close()
	conn, resp, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil || resp.Header.Get("RateLimit") == "" {
		t.Fatalf("got %v, error %v, want the fields of the limit of connections", resp, err)
	}
	defer conn.CloseNow()
	for range 3 {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = conn.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusTryAgainLater || got != 2 {
		t.Errorf("got %d messages and %v, want 2 and a close frame", got, err)
	}
}

func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, done, began := make(chan *url.URL, 3), 0, time.Now()
		for range 3 {
			jobs <- &url.URL{Host: "example.com"}
		}
		close(jobs)
		worker(t.Context(), algorithms.NewMemory(nil), twoPerHour, jobs, func(*url.URL) { done++ })
		if took := time.Since(began); done != 3 || took != 30*time.Minute {
			t.Errorf("got %d jobs in %v, want 3 in 30m", done, took)
		}
	})
}
