// How an RPC ended, although its response has the status 200.
//
//	Protocol           The code stands in
//	gRPC               Grpc-Status, in the trailer, or in the header of a "trailers-only" response
//	gRPC-Web           grpc-status, in the last frame of the body, or Grpc-Status in the header
//	a Connect stream   error.code, in the JSON of the last frame of the body
//	a Connect unary    the HTTP status, so nothing is read
//
// A frame has a byte of flags, four bytes of length, and a payload, which gzip may have compressed. The frames of
// application/grpc-web-text are base64. Only the last frame is kept, and no more of it than maxEnd.

package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxEnd bounds what is kept of the last frame, and what is decompressed of it.
const maxEnd = 64 << 10

const (
	frameHeader = 5 // bytes

	flagCompressed = 1 << 0
	flagEndStream  = 1 << 1 // of Connect
	flagTrailer    = 1 << 7 // of gRPC-Web
)

// An Ending reads a response, and finds how its RPC ended. It is an io.Writer of the response's body.
type Ending struct {
	header http.Header
	flag   byte // of the last frame; 0: gRPC, whose body has no code
	text   bool // the body is base64

	quantum []byte // of base64, that is not complete
	start   []byte // of a frame, that is not complete
	left    uint32 // bytes of the frame that have not come
	last    []byte // the payload of the last frame, at most maxEnd; nil: it has not begun
	flags   byte   // of that frame
}

// EndingOf returns the Ending of a response with the status 200, or nil if that status says all.
func EndingOf(h http.Header) *Ending {
	family, hasCodec := familyOf(h)
	switch {
	case family == "application/grpc":
		return &Ending{header: h}
	case family == "application/grpc-web":
		return &Ending{header: h, flag: flagTrailer}
	case family == "application/grpc-web-text":
		return &Ending{header: h, flag: flagTrailer, text: true}
	case family == "application/connect" && hasCodec:
		return &Ending{header: h, flag: flagEndStream}
	default:
		return nil
	}
}

// ReadsBody reports whether the body has the code.
func (e *Ending) ReadsBody() bool { return e.flag != 0 }

// Write reads a part of the body. It keeps no bytes of p, and returns no error.
func (e *Ending) Write(p []byte) (int, error) {
	switch {
	case e.flag == 0:
	case e.text:
		e.decode(p)
	default:
		e.read(p)
	}
	return len(p), nil
}

// decode reads base64. A server may encode each part of the body by itself, so there may be padding in the middle.
func (e *Ending) decode(p []byte) {
	for _, c := range p {
		if c == '\r' || c == '\n' {
			continue
		}
		if e.quantum = append(e.quantum, c); len(e.quantum) < 4 {
			continue
		}
		var room [3]byte
		n, _ := base64.StdEncoding.Decode(room[:], e.quantum)
		e.quantum = e.quantum[:0]
		e.read(room[:n])
	}
}

// read reads frames.
func (e *Ending) read(p []byte) {
	for len(p) > 0 {
		if e.left > 0 {
			n := min(uint64(e.left), uint64(len(p)))
			if e.last != nil {
				e.last = append(e.last, p[:min(n, uint64(maxEnd-len(e.last)))]...)
			}
			e.left -= uint32(n)
			p = p[n:]
			continue
		}
		n := min(frameHeader-len(e.start), len(p))
		e.start, p = append(e.start, p[:n]...), p[n:]
		if len(e.start) < frameHeader {
			return
		}
		e.flags, e.left, e.last = e.start[0], binary.BigEndian.Uint32(e.start[1:]), nil
		if e.flags&e.flag != 0 {
			e.last = []byte{}
		}
		e.start = e.start[:0]
	}
}

// Status returns the HTTP status of the code, after the handler has returned; 0 if the response has no code that can
// be read.
func (e *Ending) Status() int {
	end := e.end()
	switch {
	case e.flag == flagEndStream && end != nil:
		return statusOfError(end)
	case e.flag == flagEndStream:
		return 0
	case end != nil:
		for line := range strings.Lines(string(end)) {
			if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(strings.TrimSpace(name), "Grpc-Status") {
				return statusOfNumber(value)
			}
		}
	}
	return statusOfHeader(e.header)
}

// end returns the payload of the last frame, or the beginning of it; nil if there is none, or it cannot be read.
func (e *Ending) end() []byte {
	if e.flags&flagCompressed == 0 || len(e.last) == 0 {
		return e.last
	}
	z, err := gzip.NewReader(bytes.NewReader(e.last))
	if err != nil {
		return nil
	}
	end, _ := io.ReadAll(io.LimitReader(z, maxEnd)) // as much as there is
	return end
}

// statusOfHeader returns the status of a Grpc-Status: of the trailer, or else of the header. HTTP/2 sends a name in
// lower case, however a handler writes it.
func statusOfHeader(h http.Header) (status int) {
	for name, values := range h {
		of, trailer := strings.CutPrefix(name, http.TrailerPrefix)
		if len(values) > 0 && strings.EqualFold(of, "Grpc-Status") && (trailer || status == 0) {
			status = statusOfNumber(values[0])
		}
	}
	return status
}

// statusOfNumber returns the status of a code of gRPC, which is UNKNOWN if it is no code.
func statusOfNumber(text string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 8)
	if err != nil || n >= uint64(len(codes)) {
		n = uint64(unknown)
	}
	return codes[n].status
}

// statusOfError returns the status of the last message of a Connect stream; 0 if it cannot be read.
func statusOfError(message []byte) int {
	var end struct {
		Error *struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(message, &end); err != nil {
		return 0
	}
	if end.Error == nil {
		return http.StatusOK
	}
	for i := range codes {
		if codes[i].name == end.Error.Code {
			return codes[i].status
		}
	}
	return codes[unknown].status
}
