// Clients of gRPC, gRPC-Web and Connect receive a refusal as an error of their protocol, with the wait.

package clients

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

const (
	unary  = "/test.Echo/Unary"
	stream = "/test.Echo/Stream"
)

type text = wrapperspb.StringValue

// serve returns the URL of a server of HTTP/1.1 and HTTP/2.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// grpcServer returns a service of grpc-go, which http.Server serves. Its calls end with a code.
func grpcServer(end codes.Code) http.Handler {
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(text)
			return in, errors.Join(dec(in), status.Error(end, "m"))
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ClientStreams: true, ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			in := new(text)
			if err := s.RecvMsg(in); err != nil {
				return err
			}
			if err := s.SendMsg(in); err != nil {
				return err
			}
			return status.Error(end, "m")
		}}},
	}, struct{}{})
	return s
}

// connectServer returns a service of connect-go, which speaks gRPC, gRPC-Web and Connect. Its calls end with a code.
func connectServer(end codes.Code) http.Handler {
	failure := func() error {
		if end == codes.OK {
			return nil
		}
		return connect.NewError(connect.Code(end), errors.New("m"))
	}
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary, func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(r.Msg), failure()
	}, connect.WithIdempotency(connect.IdempotencyNoSideEffects)))
	mux.Handle(stream, connect.NewBidiStreamHandler(stream, func(_ context.Context, s *connect.BidiStream[text, text]) error {
		in, err := s.Receive()
		if err != nil {
			return err
		}
		return errors.Join(s.Send(in), failure())
	}))
	return mux
}

// An answer is a response as a client understands it. The zero value is success.
type answer struct {
	code   string // e.g. "ResourceExhausted"; "": success
	delay  time.Duration
	header string // Retry-After
}

// A caller makes one call.
type caller func(t *testing.T, url string) answer

// grpcGo calls as grpc-go does.
func grpcGo(method string) caller {
	return func(t *testing.T, url string) answer {
		conn := dial(t, url)
		if method == unary {
			var trailer metadata.MD
			return grpcAnswer(conn.Invoke(t.Context(), method, new(text), new(text), grpc.Trailer(&trailer)), &trailer)
		}
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(new(text)); err != nil && !errors.Is(err, io.EOF) { // after EOF, RecvMsg returns the reason
			t.Fatal(err)
		}
		err = s.RecvMsg(new(text))
		trailer := s.Trailer()
		return grpcAnswer(err, &trailer)
	}
}

func dial(t *testing.T, url string, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+url[len("http://"):], append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func grpcAnswer(err error, trailer *metadata.MD) answer {
	if err == nil {
		return answer{}
	}
	s := status.Convert(err)
	a := answer{code: s.Code().String()}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			a.delay = info.GetRetryDelay().AsDuration()
		}
	}
	if v := trailer.Get("retry-after"); len(v) == 1 {
		a.header = v[0]
	}
	return a
}

// connectGo calls as connect-go does, under its options.
func connectGo(method string, o ...connect.ClientOption) caller {
	return func(t *testing.T, url string) answer {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		client := connect.NewClient[text, text](&http.Client{Transport: transport}, url+method, o...)
		if method == unary {
			_, err := client.CallUnary(t.Context(), connect.NewRequest(new(text)))
			return connectAnswer(err)
		}
		s := client.CallBidiStream(t.Context())
		if err := s.Send(new(text)); err != nil && !errors.Is(err, io.EOF) { // after EOF, Receive returns the reason
			t.Fatal(err)
		}
		_, err := s.Receive()
		return connectAnswer(err)
	}
}

func connectAnswer(err error) answer {
	if err == nil {
		return answer{}
	}
	var e *connect.Error
	if !errors.As(err, &e) {
		return answer{code: err.Error()}
	}
	a := answer{code: codeNames[e.Code()], header: e.Meta().Get("Retry-After")}
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if info, ok := v.(*errdetails.RetryInfo); ok {
				a.delay = info.GetRetryDelay().AsDuration()
			}
		}
	}
	return a
}

// codeNames are the names that grpc-go gives to the codes of connect-go.
var codeNames = map[connect.Code]string{
	connect.CodeResourceExhausted: "ResourceExhausted", connect.CodeUnauthenticated: "Unauthenticated",
	connect.CodeInvalidArgument: "InvalidArgument", connect.CodeUnavailable: "Unavailable", connect.CodeInternal: "Internal",
	connect.CodePermissionDenied: "PermissionDenied",
}

// callers has the clients by protocol and kind of call, each with the service that it calls.
var callers = []struct {
	name   string
	server func(codes.Code) http.Handler
	call   caller
}{
	{"grpc-go unary", grpcServer, grpcGo(unary)},
	{"grpc-go stream", grpcServer, grpcGo(stream)},
	{"connect-go Connect unary", connectServer, connectGo(unary)},
	{"connect-go Connect JSON", connectServer, connectGo(unary, connect.WithProtoJSON())},
	{"connect-go Connect GET", connectServer, connectGo(unary, connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects))},
	{"connect-go Connect stream", connectServer, connectGo(stream)},
	{"connect-go Connect stream of JSON", connectServer, connectGo(stream, connect.WithProtoJSON())},
	{"connect-go gRPC unary", connectServer, connectGo(unary, connect.WithGRPC())},
	{"connect-go gRPC JSON", connectServer, connectGo(unary, connect.WithGRPC(), connect.WithProtoJSON())},
	{"connect-go gRPC stream", connectServer, connectGo(stream, connect.WithGRPC())},
	{"connect-go gRPC-Web unary", connectServer, connectGo(unary, connect.WithGRPCWeb())},
	{"connect-go gRPC-Web stream", connectServer, connectGo(stream, connect.WithGRPCWeb())},
}

// TestClientsOfRPC: each client is served, then denied with the wait; other refusals have their own codes.
func TestClientsOfRPC(t *testing.T) {
	down := limiterFunc(func(context.Context, []algorithms.Check) error { return errors.New("down") })
	hourly := algorithms.TokenBucket(1, time.Hour)
	all := keyfunc.Const("all")
	key := keyfunc.APIKey("X-API-Key", func(context.Context, string) (keyfunc.Identity, error) { return keyfunc.Identity{}, nil })
	tests := []struct {
		name    string
		limiter algorithms.Limiter
		policy  ratelimit.Policy
		code    string
	}{
		{"denied", nil, ratelimit.Policy{Key: all, Limit: hourly}, "ResourceExhausted"},
		{"capacity", nil, ratelimit.Policy{Key: all, Limit: hourly, Capacity: true}, "ResourceExhausted"},
		{"nobody", nil, ratelimit.Policy{Key: all, Limit: algorithms.Nobody()}, "PermissionDenied"},
		{"failed closed", down, ratelimit.Policy{Key: all, Limit: hourly, Fail: algorithms.FailClosed}, "Unavailable"},
		{"no identity", nil, ratelimit.Policy{Key: key, Limit: hourly}, "Unauthenticated"},
	}
	for _, c := range callers {
		for _, tt := range tests {
			limiter := tt.limiter
			if limiter == nil {
				limiter = algorithms.NewMemory(nil)
			}
			tt.policy.Name = "p"
			url := serve(t, ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Logger: slog.New(slog.DiscardHandler)}, tt.policy)).Handler(c.server(codes.OK)))
			if tt.name == "denied" || tt.name == "capacity" {
				if got := c.call(t, url); got != (answer{}) {
					t.Fatalf("%s: got %+v for the first call", c.name, got)
				}
			}
			got := c.call(t, url)
			seconds, _ := strconv.Atoi(got.header) // 0 without a header
			waits := tt.name == "denied" || tt.name == "capacity" || tt.name == "failed closed"
			if got.code != tt.code || got.delay != time.Duration(seconds)*time.Second || waits != (seconds > 0) {
				t.Errorf("%s, %s: got %+v, want %s", c.name, tt.name, got, tt.code)
			}
			if seconds > 0 && tt.code == "ResourceExhausted" && seconds < 3000 {
				t.Errorf("%s, %s: got a wait of %d s, want nearly an hour", c.name, tt.name, seconds)
			}
		}
	}
}

// TestChargeIfOfRPC: ChargeIf receives the HTTP status of each code, from the services and protocols of all clients.
func TestChargeIfOfRPC(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.OK: 200, codes.Canceled: 499, codes.Unknown: 500, codes.InvalidArgument: 400, codes.DeadlineExceeded: 504, codes.NotFound: 404,
		codes.AlreadyExists: 409, codes.PermissionDenied: 403, codes.ResourceExhausted: 429, codes.FailedPrecondition: 400, codes.Aborted: 409,
		codes.OutOfRange: 400, codes.Unimplemented: 501, codes.Internal: 500, codes.Unavailable: 503, codes.DataLoss: 500, codes.Unauthenticated: 401,
	} {
		for _, c := range callers {
			ended := make(chan int, 1)
			m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
				Name: "p", Limit: algorithms.TokenBucket(10, time.Hour),
				ChargeIf: func(status int) bool { ended <- status; return true },
			}))
			c.call(t, serve(t, m.Handler(c.server(code))))
			if got := <-ended; got != want {
				t.Errorf("%s: got %d for %v, want %d", c.name, got, code, want)
			}
		}
	}
}

// TestRetryPolicyOfGRPC: a retry policy of grpc-go tries again when the limit admits the call. With its own backoff of
// 1 ms it would use up both attempts at once.
func TestRetryPolicyOfGRPC(t *testing.T) {
	m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{Name: "p", Limit: algorithms.TokenBucket(1, 2*time.Second)}))
	var requests atomic.Int64
	limited := m.Handler(grpcServer(codes.OK))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		limited.ServeHTTP(w, r)
	}))
	conn := dial(t, url, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2,
		"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	for range 2 {
		if err := conn.Invoke(t.Context(), unary, new(text), new(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := requests.Load(); got != 3 {
		t.Errorf("got %d requests, want 3: one denied", got)
	}
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}
