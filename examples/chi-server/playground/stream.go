// The stream of a sandbox's level.

package playground

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	lookEvery   = 100 * time.Millisecond
	sayEvery    = 10 * time.Second // even without a change, because proxies cut silent streams
	streamsLast = 10 * time.Minute // browsers connect again by themselves
	writeWithin = 5 * time.Second  // otherwise the reader is gone
)

// stream sends the sandbox's level, as server-sent events, whenever it changes.
func (p *Page) stream(box *sandbox, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies such as nginx must pass on each event at once
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return // a stream without a body would be open for nothing
	}
	streams := p.streams
	if p.ended.Err() != nil {
		streams = nil // no stream may begin
	}
	select {
	case streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var last level
	var said time.Time
	for began := time.Now(); time.Since(began) < streamsLast; {
		now, err := box.level(r.Context(), p.gate)
		if err == nil && (now != last || time.Since(said) >= sayEvery) {
			if say(w, now) != nil {
				return
			}
			last, said = now, time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-p.ended.Done():
			return
		case <-look.C:
		}
	}
}

func say(w http.ResponseWriter, l level) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(writeWithin)) // recorders in tests have none
	if _, err := fmt.Fprintf(w, "event: level\ndata: %s\n\n", data); err != nil {
		return err
	}
	return c.Flush()
}
