package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A statusWriter passes a response on and notes its status.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 until there is one
}

// watchStatus returns w as one that notes the status. What handlers may ask of
// the writers of net/http's two servers they may ask of it, too; whatever else
// there is http.ResponseController finds through Unwrap.
func watchStatus(w http.ResponseWriter) (http.ResponseWriter, *statusWriter) {
	s := &statusWriter{ResponseWriter: w}
	flusher, flushes := w.(http.Flusher)
	hijacker, hijacks := w.(http.Hijacker)
	reader, reads := w.(io.ReaderFrom)
	pusher, pushes := w.(http.Pusher)
	f := statusFlusher{statusWriter: s, flusher: flusher}
	switch {
	case flushes && hijacks && reads:
		return &statusWriter1{statusHijacker: statusHijacker{statusFlusher: f, hijacker: hijacker}, reader: reader}, s
	case flushes && hijacks:
		return &statusHijacker{statusFlusher: f, hijacker: hijacker}, s
	case flushes && pushes:
		return &statusWriter2{statusFlusher: f, Pusher: pusher}, s
	case flushes:
		return &f, s
	default:
		return s, s
	}
}

func (s *statusWriter) WriteHeader(status int) {
	// An informational status (RFC 9110, 15.2) is not yet the answer, but for
	// that which ends HTTP on the connection.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		s.note(status)
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusWriter) Write(p []byte) (int, error) {
	s.note(http.StatusOK)
	return s.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *statusWriter) note(status int) {
	if s.status == 0 {
		s.status = status
	}
}

// A statusFlusher is one that flushes.
type statusFlusher struct {
	*statusWriter
	flusher http.Flusher
}

func (s *statusFlusher) Flush() {
	s.note(http.StatusOK)
	s.flusher.Flush()
}

// FlushError flushes, and returns the error if the writer below tells one.
func (s *statusFlusher) FlushError() error {
	s.note(http.StatusOK)
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// A statusHijacker is one that may be taken over, too.
type statusHijacker struct {
	statusFlusher
	hijacker http.Hijacker
}

func (s *statusHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := s.hijacker.Hijack()
	if err == nil {
		s.note(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// A statusWriter1 is one of HTTP/1.1.
type statusWriter1 struct {
	statusHijacker
	reader io.ReaderFrom
}

func (s *statusWriter1) ReadFrom(r io.Reader) (int64, error) {
	s.note(http.StatusOK)
	return s.reader.ReadFrom(r)
}

// A statusWriter2 is one of HTTP/2.
type statusWriter2 struct {
	statusFlusher
	http.Pusher
}
