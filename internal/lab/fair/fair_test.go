package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestShares: the modest tenants beside the hog are served, and without shares they are not.
func TestShares(t *testing.T) {
	s := scenes[0]
	before, after := s.simulated(t, false), s.simulated(t, true)
	for i := range 9 {
		if after.got[i] < after.asked[i]*995/1000 || before.got[i] > before.asked[i]/2 {
			t.Errorf("tenant %d: got %d of %d, and %d of %d without shares", i, after.got[i], after.asked[i], before.got[i], before.asked[i])
		}
	}
	svg := picture(&[2]result{before, after})
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
