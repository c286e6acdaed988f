// The lines for each stack, as RECIPES.md shows them.

package routers

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"

	"connectrpc.com/connect"
	"github.com/coder/websocket"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/gorilla/mux"
	"github.com/julienschmidt/httprouter"
	echo4 "github.com/labstack/echo/v4"
	"github.com/labstack/echo/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/calls"
)

func order(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("order")) }

func netHTTP(limited *ratelimit.Middleware) http.Handler {
	router := http.NewServeMux()
	router.Handle("GET /orders/{id}", limited.Handler(http.HandlerFunc(order)))
	return router
}

func chiStack(limited *ratelimit.Middleware) http.Handler {
	router := chi.NewRouter()
	router.Use(limited.Handler)
	router.Get("/orders/{id}", order)
	return router
}

func gorillaStack(limited *ratelimit.Middleware) http.Handler {
	router := mux.NewRouter()
	router.Use(func(next http.Handler) http.Handler {
		inner := limited.Handler(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern, _ = mux.CurrentRoute(r).GetPathTemplate() // for keyfunc.Route
			inner.ServeHTTP(w, r)
		})
	})
	router.HandleFunc("/orders/{id}", order)
	return router
}

func httprouterStack(limited *ratelimit.Middleware) http.Handler {
	router := httprouter.New()
	get := func(path string, h http.Handler) {
		inner := limited.Handler(h)
		router.HandlerFunc("GET", path, func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = path // for keyfunc.Route
			inner.ServeHTTP(w, r)
		})
	}
	get("/orders/:id", http.HandlerFunc(order))
	return router
}

func ginStack(limited *ratelimit.Middleware, router *gin.Engine) {
	router.Use(func(c *gin.Context) {
		c.Request.Pattern = c.FullPath() // for keyfunc.Route
		served := false
		limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served, c.Request = true, r
			c.Next()
			w.WriteHeader(c.Writer.Status()) // for ChargeIf
		})).ServeHTTP(c.Writer, c.Request)
		if !served {
			c.Abort()
		}
	})
}

func echo5Stack(limited *ratelimit.Middleware, router *echo.Echo) {
	router.Use(echo.WrapMiddleware(limited.Handler))
	router.Use(func(next echo.HandlerFunc) echo.HandlerFunc { // ChargeIf then sees the status of a returned error
		return func(c *echo.Context) error {
			if err := next(c); err != nil {
				c.Echo().HTTPErrorHandler(c, err)
			}
			return nil
		}
	})
}

func echo4Stack(limited *ratelimit.Middleware, router *echo4.Echo) {
	router.Use(func(next echo4.HandlerFunc) echo4.HandlerFunc {
		return func(c echo4.Context) error {
			c.Request().Pattern = c.Path() // for keyfunc.Route
			return next(c)
		}
	}, echo4.WrapMiddleware(limited.Handler), func(next echo4.HandlerFunc) echo4.HandlerFunc {
		return func(c echo4.Context) error { // ChargeIf then sees the status of a returned error
			if err := next(c); err != nil {
				c.Error(err)
			}
			return nil
		}
	})
}

func fiberStack(limited *ratelimit.Middleware, router *fiber.App) {
	router.Use(adaptor.HTTPMiddleware(limited.Handler)) // rate limits only: no Concurrent, ChargeIf or Settle
}

func grpcStack(limited *ratelimit.Middleware) *grpc.Server {
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := admit(ctx, limited, info.FullMethod); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
	stream := func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := admit(s.Context(), limited, info.FullMethod); err != nil {
			return err
		}
		return next(srv, s)
	}
	return grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))
}

func admit(ctx context.Context, limited *ratelimit.Middleware, method string) error {
	p, _ := peer.FromContext(ctx)
	md, _ := metadata.FromIncomingContext(ctx)
	v, _ := calls.Allow(ctx, limited, calls.Call{Name: method, Peer: p.Addr.String(), Header: http.Header(md)})
	switch {
	case v.Allowed:
		return nil
	case v.Status == http.StatusUnauthorized:
		return status.Error(codes.Unauthenticated, "want a valid key")
	case v.Status == http.StatusForbidden:
		return status.Error(codes.PermissionDenied, "not allowed")
	case v.Status != http.StatusTooManyRequests:
		return status.Error(codes.Unavailable, "try again later")
	}
	denied, _ := status.New(codes.ResourceExhausted, "quota exceeded").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(v.RetryAfter)})
	return denied.Err()
}

func connectStack(limited *ratelimit.Middleware) http.Handler {
	router := http.NewServeMux()
	router.Handle("/orders.Orders/Get", limited.Handler(connect.NewUnaryHandler("/orders.Orders/Get", getOrder)))
	return router
}

func getOrder(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
	return connect.NewResponse(new(emptypb.Empty)), nil
}

func serveMessages(r *http.Request, conn *websocket.Conn, messages *ratelimit.Middleware, do func([]byte)) {
	for _, text, err := conn.Read(r.Context()); err == nil; _, text, err = conn.Read(r.Context()) {
		v, _ := calls.Allow(r.Context(), messages, calls.Call{Name: "message", Peer: r.RemoteAddr, Header: r.Header})
		if !v.Allowed {
			_ = conn.Close(websocket.StatusTryAgainLater, fmt.Sprint("retry after ", v.RetryAfter))
			return
		}
		do(text)
	}
}

func worker(ctx context.Context, limiter algorithms.Limiter, limit algorithms.Limit, jobs <-chan *url.URL, do func(*url.URL)) {
	for job := range jobs {
		if err := algorithms.Wait(ctx, limiter, "host="+job.Hostname(), limit); err != nil {
			log.Print(err) // ctx has ended, or would end before the turn
			return
		}
		do(job)
	}
}
