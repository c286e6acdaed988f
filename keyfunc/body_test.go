package keyfunc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/penstock-go/penstock/internal/draw"
)

func posted(kind, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/login", struct{ io.Reader }{strings.NewReader(body)}) // of unknown length
	r.Header.Set("Content-Type", kind)
	return r
}

const form = "application/x-www-form-urlencoded"

func TestBodyFields(t *testing.T) {
	inJSON, inForm := JSONField("login", "account"), FormField("login", "account")
	for name, tt := range map[string]struct {
		key        Key
		kind, body string
		want       string
		err        error
	}{
		"JSON":                        {inJSON, "application/json", `{"a":[{"account":"x"}],"account":"Alice "}`, "login=alice", nil},
		"JSON of another type":        {inJSON, form, `{"account":"alice"}`, "login=alice", nil},
		"JSON in another case":        {inJSON, "", `{"ACCOUNT":"alice"}`, "login=alice", nil},
		"a number":                    {inJSON, "", `{"account":4200}`, "login=4200", nil},
		"more after the object":       {inJSON, "", `{"account":"a"} {"account":"b"}`, "login=a", nil},
		"an odd value":                {inJSON, "", `{"account":"a|b"}`, "login=a%7Cb", nil},
		"a field that comes twice":    {inJSON, "", `{"account":"a","account":"b"}`, "", ErrMalformed},
		"the same in another case":    {inJSON, "", `{"account":"a","Account":"b"}`, "", ErrMalformed},
		"an object":                   {inJSON, "", `{"account":{"a":"b"}}`, "", ErrMalformed},
		"null":                        {inJSON, "", `{"account":null}`, "", ErrMalformed},
		"true":                        {inJSON, "", `{"account":true}`, "", ErrMalformed},
		"no object":                   {inJSON, "", `["account","a"]`, "", ErrMalformed},
		"half an object":              {inJSON, "", `{"account":"a"`, "", ErrMalformed},
		"no JSON":                     {inJSON, "", `account=a`, "", ErrMalformed},
		"another field":               {inJSON, "", `{"user":"a"}`, "", ErrMissing},
		"an empty value":              {inJSON, "", `{"account":" "}`, "", ErrMissing},
		"no body":                     {inJSON, "", ``, "", ErrMissing},
		"as long as may be":           {inJSON, "", `{"account":"a"}` + strings.Repeat(" ", maxBody-15), "login=a", nil},
		"longer":                      {inJSON, "", `{"account":"a"}` + strings.Repeat(" ", maxBody-14), "", ErrMalformed},
		"a form":                      {inForm, form + "; charset=utf-8", `x=1&account=+Alice`, "login=alice", nil},
		"a form with two":             {inForm, form, `account=a&account=b`, "", ErrMalformed},
		"a form without":              {inForm, form, `Account=a`, "", ErrMissing},
		"a form that is none":         {inForm, "application/json", `account=a`, "", ErrMalformed},
		"a form with parts":           {inForm, "multipart/form-data; boundary=x", `account=a`, "", ErrMalformed},
		"a form with a bad escape":    {inForm, form, `account=a&b=%zz`, "", ErrMalformed},
		"a form that semicolons part": {inForm, form, `b=1;account=a`, "", ErrMalformed},
	} {
		r := posted(tt.kind, tt.body)
		for range 2 { // policies may share a body
			got, _, err := tt.key.Append(nil, &Request{Request: r})
			if !errors.Is(err, tt.err) || string(got) != tt.want {
				t.Errorf("%s: got %q, error %v, want %q, error %v", name, got, err, tt.want, tt.err)
			}
			if tt.err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: got error %v, want a 400", name, err)
			}
		}
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != tt.body {
			t.Errorf("%s: the handler reads %d bytes, error %v, want %d", name, len(body), err, len(tt.body))
		}
	}
}

// The key is of the account that a handler reads with encoding/json, or there is none.
func TestJSONFieldReadsAsTheHandler(t *testing.T) {
	key := JSONField("login", "account")
	names := []string{`"account"`, `"Account"`, `"acc\u006funt"`, `"aKcount"`, `"account "`, `"x"`, `"{"`}
	values := []string{`"a"`, `"b"`, `"\u0061"`, `7`, `null`, `{"account":"c"}`, `["account"]`, `"`, `}`}
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		var parts []string
		for range v.Int(0, 4) {
			parts = append(parts, draw.Of(v, names...)+":"+draw.Of(v, values...))
		}
		body := "{" + strings.Join(parts, ",") + "}"
		var handler struct{ Account any }
		readErr := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&handler)
		got, _, err := key.Append(nil, &Request{Request: posted("", body)})
		if err != nil {
			return // refused
		}
		want, _ := handler.Account.(string)
		if _, number := handler.Account.(float64); number {
			want = "7"
		}
		if readErr != nil || string(got) != "login="+want {
			t.Fatalf("%s: got %q, and the handler reads %v, error %v", body, got, handler.Account, readErr)
		}
	})
}

// A body that breaks off is the client's mistake, and the handler still meets its error.
func TestBodyFieldOfABrokenBody(t *testing.T) {
	broken := errors.New("connection reset")
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(broken))
	if _, _, err := JSONField("login", "account").Append(nil, &Request{Request: r}); !errors.Is(err, ErrMalformed) {
		t.Errorf("got error %v, want ErrMalformed", err)
	}
	if _, err := io.ReadAll(r.Body); !errors.Is(err, broken) {
		t.Errorf("the handler got error %v, want its own", err)
	}
}

func TestBodyFieldMisconfigured(t *testing.T) {
	for _, k := range []Key{JSONField("login", ""), FormField("usr", "account"), JSONField("", "account")} {
		if _, err := k.Inspect(); err == nil {
			t.Error("got no misconfiguration")
		}
	}
}
