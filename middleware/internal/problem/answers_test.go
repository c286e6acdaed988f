package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// A malformedKey is an error that says what a client may read.
type malformedKey struct{}

func (malformedKey) Error() string     { return "secret" }
func (malformedKey) ForClient() string { return "The key is malformed." }

// TestAnswers: the body of each kind, from one policy and from two, has the status of its response.
func TestAnswers(t *testing.T) {
	var a Answers
	a.Add("p", nil)
	a.Add("q", nil)
	for kind := Exceeded; kind < kinds; kind++ {
		for _, policies := range [][]string{{"p"}, {"p", "q"}, {"unknown"}, nil} {
			why := &Refusal{Status: texts[kind].status, Kind: kind, Policies: policies}
			var got struct {
				Title, Detail string
				Status        int
				Violated      []string `json:"violated-policies"`
			}
			if err := json.Unmarshal(a.Body(why, nil), &got); err != nil {
				t.Fatal(err)
			}
			if got.Status != why.Status || got.Title != why.Title() || got.Detail != texts[kind].detail || !slices.Equal(got.Violated, policies) {
				t.Errorf("kind %d of %v: got %+v", kind, policies, got)
			}
		}
	}
}

// TestAnswersReady: a body of one policy is made once.
func TestAnswersReady(t *testing.T) {
	var a Answers
	a.Add("p", nil)
	policies := []string{"p"}
	if n := testing.AllocsPerRun(100, func() { a.Body(&Refusal{Status: 429, Kind: Exceeded, Policies: policies}, nil) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

// TestAnswersWithoutPolicy: the status is enough, and a client reads no text of an error.
func TestAnswersWithoutPolicy(t *testing.T) {
	var a Answers
	a.Add("p", []string{"Bearer", `ApiKey header="X-API-Key"`})
	a.Add("q", []string{"Bearer"})
	for _, tt := range []struct {
		why  Refusal
		err  error
		want string
	}{
		{Refusal{Status: 401}, nil, `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"The request needs a valid key in Authorization: Bearer or X-API-Key."}`},
		{Refusal{Status: 400}, fmt.Errorf("p: %w", malformedKey{}), `{"type":"about:blank","title":"Bad Request","status":400,"detail":"The key is malformed."}`},
		{Refusal{Status: 400}, errors.New("secret"), `{"type":"about:blank","title":"Bad Request","status":400}`},
		{Refusal{Status: 503}, nil, `{"type":"about:blank","title":"Service Unavailable","status":503}`},
	} {
		if got := string(a.Body(&tt.why, tt.err)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if got, want := a.Challenge(), `Bearer, ApiKey header="X-API-Key"`; got != want {
		t.Errorf("got challenge %q, want %q", got, want)
	}
	if got := new(Answers).Challenge(); got != "Bearer" {
		t.Errorf("got challenge %q without one, want Bearer", got)
	}
}
