// Questions to all instances: what only one process knows, of each of them.
//
// An instance asks all of Console.Instances, itself included, at the moment of the question. So nothing is stored or sent
// while nobody asks, and no instance needs to know its own address. The questions have the parameter "here", which an
// instance answers for itself, so questions end.

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

const (
	askFor      = 3 * time.Second // all instances together
	askedAtOnce = 32
	maxAnswer   = 4 << 20 // bytes

	// nameField is the field of each answer that tells instances apart: several addresses may lead to one.
	nameField = "Penstock-Instance"
)

// An instance is where one answers.
type instance struct {
	base *url.URL // of Console.Instances
	dial string   // host and port; the base may name several instances
}

func parseInstances(texts []string) (bases []*url.URL, err error) {
	var errs []error
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.User != nil {
			errs = append(errs, fmt.Errorf("ratelimit: instance %q: want a URL such as http://shop-admin:9090/limits", text))
			continue
		}
		bases = append(bases, u)
	}
	return bases, errors.Join(errs...)
}

// findInstances returns where all instances answer, and the hosts that have no address.
func (h *handler) findInstances(ctx context.Context) (all []instance, failed []failure) {
	for _, base := range h.instances {
		port := base.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
		}
		found, err := h.lookUp(ctx, "ip", base.Hostname())
		if err != nil || len(found) == 0 {
			h.logger.Warn("ratelimit: console: look-up of instances failed", "host", base.Hostname(), "error", err)
			failed = append(failed, failure{base.Host, "the name has no address"})
		}
		for _, ip := range found {
			all = append(all, instance{base, net.JoinHostPort(ip.String(), port)})
		}
	}
	return all, failed
}

// A failure is an instance that did not answer, and why.
type failure struct {
	Instance string `json:"instance"`
	Why      string `json:"why"`
}

// The asked are the instances of an answer, also those that did not answer.
type asked struct {
	Instances int       `json:"instances,omitempty"` // 0: only this one
	Failed    []failure `json:"failed,omitempty"`    // of them, also those that do not know a hash
}

// askAll asks all instances for what they know themselves. It gives the answer of each to a function, one at a time.
func askAll[T any](h *handler, r *http.Request, path string, answered func(*T)) (a asked) {
	ctx, cancel := context.WithTimeout(r.Context(), askFor)
	defer cancel()
	all, failed := h.findInstances(ctx)
	var (
		mu    sync.Mutex
		known = make(map[string]bool)
		work  sync.WaitGroup
		free  = make(chan struct{}, askedAtOnce)
	)
	for _, to := range all {
		free <- struct{}{}
		work.Go(func() {
			defer func() { <-free }()
			name, body, why := h.ask(ctx, r, to, path)
			mu.Lock()
			defer mu.Unlock()
			if name != "" && known[name] {
				return
			}
			known[name] = true
			a.Instances++
			answer := new(T)
			if why == "" && (name == "" || json.Unmarshal(body, answer) != nil) {
				why = "the answer is not a console's"
			}
			if why != "" {
				failed = append(failed, failure{to.dial, why})
				return
			}
			answered(answer)
		})
	}
	work.Wait()
	slices.SortFunc(failed, func(a, b failure) int { return strings.Compare(a.Instance, b.Instance) })
	a.Failed = failed
	return a
}

// ask asks one instance, with the operator's own authorization.
func (h *handler) ask(ctx context.Context, r *http.Request, to instance, path string) (name string, body []byte, why string) {
	question := to.base.JoinPath(path)
	question.RawQuery = "here=1"
	if path == "/who" {
		question.RawQuery += "&" + r.URL.RawQuery
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return "", nil, "the request is invalid"
	}
	for _, name := range []string{"Authorization", "Cookie"} {
		request.Header[name] = r.Header[name]
	}
	// A name of several instances must not lead to the same one again, so each question has a connection of its own.
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to.dial)
	}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		h.logger.Warn("ratelimit: console: an instance did not answer", "instance", to.dial, "error", err)
		return "", nil, "no answer"
	}
	defer response.Body.Close()
	name = response.Header.Get(nameField)
	if response.StatusCode != http.StatusOK {
		return name, nil, "it answered " + response.Status
	}
	if body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return name, nil, "the answer broke off"
	}
	return name, body, ""
}

// A whoView is the answer to /who.
type whoView struct {
	Policies []Standing `json:"policies"`
	asked
}

// whoEverywhere merges what all instances say of a client. The state of its keys is the same everywhere, but only an
// instance that has denied the client knows its tier. So the verdict of the instance that denied it last replaces the
// others, and denials add up.
func (h *handler) whoEverywhere(r *http.Request) (v whoView) {
	v.asked = askAll(h, r, "/who", func(one *whoView) {
		for _, s := range one.Policies {
			i := slices.IndexFunc(v.Policies, s.sameKey)
			if i < 0 {
				v.Policies = append(v.Policies, s)
				continue
			}
			known := &v.Policies[i]
			denied, first, last := known.Denied+s.Denied, earlier(known.First, s.First), later(known.Last, s.Last)
			if known.Verdict == Unknown || s.Verdict != Unknown && s.Last.After(known.Last) {
				*known = s
			}
			known.Denied, known.First, known.Last = denied, first, last
		}
	})
	sortStandings(v.Policies)
	return v
}

func (s *Standing) sameKey(other Standing) bool {
	return s.Policy == other.Policy && s.Key == other.Key
}

// An overridesView is the answer to /overrides.
type overridesView struct {
	Set  map[string]map[string]ratelimit.Override `json:"set_by_operators"`
	Bans []Standing                               `json:"banned_by_policies"`
	asked
}

// A clientsView is the answer to /denied and /near.
type clientsView struct {
	Clients []Client `json:"clients"`
	asked
}

// elsewhere reports whether a question is one to other instances, too.
func (h *handler) elsewhere(r *http.Request) bool {
	return len(h.instances) > 0 && !r.URL.Query().Has("here")
}

// clients returns the clients that all instances list, and were not denied before an instant; here has this one's.
func (h *handler) clients(r *http.Request, path string, since time.Time, here func() []Client) (v clientsView) {
	if !h.elsewhere(r) {
		return clientsView{Clients: here()}
	}
	v.asked = askAll(h, r, path, func(one *clientsView) { v.Clients = append(v.Clients, one.Clients...) })
	v.Clients = merge(v.Clients, since)
	return v
}
