package instruments

import (
	"testing"
	"time"
)

func TestFullest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		served []time.Duration
		begin  time.Duration
		most   int
	}{
		{nil, 0, 0},
		{[]time.Duration{5}, 5, 1},
		{[]time.Duration{0, 10}, 0, 1}, // a window apart
		{[]time.Duration{0, 9}, 0, 2},
		{[]time.Duration{0, 8, 9, 10, 17, 18}, 8, 4},
		{[]time.Duration{1, 1, 1, 30, 31}, 1, 3},
	}
	for _, tt := range tests {
		if begin, most := fullest(tt.served, 10); begin != tt.begin || most != tt.most {
			t.Errorf("%v: got %d from %d on, want %d from %d on", tt.served, most, begin, tt.most, tt.begin)
		}
	}
}
