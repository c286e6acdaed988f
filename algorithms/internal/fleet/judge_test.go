package fleet

import "testing"

func (r *run) judge(t *testing.T) {
	t.Log(r.plan)
	byStatus := map[int]int{}
	admitted := map[int]int{}
	src := map[string]int{}
	for _, rec := range r.records {
		byStatus[rec.status]++
		if rec.admitted {
			admitted[rec.client]++
		}
		src[rec.source.String()]++
	}
	span := r.ended.Sub(r.began)
	for c, n := range admitted {
		all := float64(r.limit.Burst()) + float64(r.limit.Requests())*span.Seconds()
		t.Logf("client %d: %d of %.0f: %.3f", c, n, all, float64(n)/all)
	}
	t.Log(len(r.records), byStatus, src, r.server.scripts)
}
