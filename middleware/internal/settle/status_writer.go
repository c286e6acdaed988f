package settle

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/penstock-go/penstock/middleware/internal/rpc"
)

// A statusWriter passes a response on and notes its status.
type statusWriter struct {
	http.ResponseWriter
	status int         // 0 until there is one
	ending *rpc.Ending // nil: the response is of no RPC, or its status says all
}

// watchStatus returns a writer that notes the status. It is a Flusher, a
// Hijacker and a Pusher if w is one. http.ResponseController finds other
// methods through Unwrap. A ReaderFrom only saves time, so watchStatus keeps it
// only where net/http has one.
func watchStatus(w http.ResponseWriter) (http.ResponseWriter, *statusWriter) {
	s := &statusWriter{ResponseWriter: w}
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	_, reads := w.(io.ReaderFrom)
	p, pushes := w.(http.Pusher)
	f, h, r := statusFlusher{s}, statusHijacker{s}, statusReader{s}
	switch {
	case flushes && hijacks && pushes:
		return struct {
			*statusWriter
			http.Flusher
			http.Hijacker
			http.Pusher
		}{s, f, h, p}, s
	case flushes && hijacks && reads: // HTTP/1.1
		return struct {
			*statusWriter
			http.Flusher
			http.Hijacker
			io.ReaderFrom
		}{s, f, h, r}, s
	case flushes && hijacks:
		return struct {
			*statusWriter
			http.Flusher
			http.Hijacker
		}{s, f, h}, s
	case flushes && pushes: // HTTP/2
		return struct {
			*statusWriter
			http.Flusher
			http.Pusher
		}{s, f, p}, s
	case hijacks && pushes:
		return struct {
			*statusWriter
			http.Hijacker
			http.Pusher
		}{s, h, p}, s
	case flushes:
		return struct {
			*statusWriter
			http.Flusher
		}{s, f}, s
	case hijacks:
		return struct {
			*statusWriter
			http.Hijacker
		}{s, h}, s
	case pushes: // http.TimeoutHandler
		return struct {
			*statusWriter
			http.Pusher
		}{s, p}, s
	default:
		return s, s
	}
}

func (s *statusWriter) WriteHeader(status int) {
	// An informational status (RFC 9110, section 15.2) is not yet the answer,
	// except 101, which ends HTTP on the connection.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		s.note(status)
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusWriter) Write(p []byte) (int, error) {
	s.note(http.StatusOK)
	if s.ending != nil {
		_, _ = s.ending.Write(p) // never fails
	}
	return s.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController. It flushes if any writer below
// can, and returns the error.
func (s *statusWriter) FlushError() error {
	err := http.NewResponseController(s.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		s.note(http.StatusOK)
	}
	return err
}

// Unwrap is for http.ResponseController, which may take over a writer below.
func (s *statusWriter) Unwrap() http.ResponseWriter { return statusHijacker{s} }

func (s *statusWriter) note(status int) {
	if s.status != 0 {
		return
	}
	if s.status = status; status == http.StatusOK {
		s.ending = rpc.EndingOf(s.Header())
	}
}

// final returns the status of the response: of an RPC, the status that its code maps to. It is 0 if nothing was
// written, or the RPC has not said how it ended.
func (s *statusWriter) final() int {
	if s.ending != nil {
		return s.ending.Status()
	}
	return s.status
}

type statusFlusher struct{ *statusWriter }

func (s statusFlusher) Flush() {
	s.note(http.StatusOK)
	s.ResponseWriter.(http.Flusher).Flush()
}

type statusHijacker struct{ *statusWriter }

func (s statusHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err == nil {
		s.note(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

func (s statusHijacker) Unwrap() http.ResponseWriter { return s.ResponseWriter }

type statusReader struct{ *statusWriter }

func (s statusReader) ReadFrom(r io.Reader) (int64, error) {
	ending := s.ending
	if s.status == 0 {
		ending = rpc.EndingOf(s.Header())
	}
	if ending != nil && ending.ReadsBody() {
		r = io.TeeReader(r, ending)
	}
	n, err := s.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
	if n > 0 && s.status == 0 { // otherwise the response has not begun
		s.status, s.ending = http.StatusOK, ending
	}
	return n, err
}
