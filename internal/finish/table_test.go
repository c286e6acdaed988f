// The table, and the bars that the product has to reach.

package finish

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const head = `# Clients against limits

%s writes this page. Each client sends 300 requests with 1, 8 and 32 workers, each with a deadline of two minutes. The columns of a
client are denied, failed, and the seconds that all took. A server with an asterisk advertises in each response how many requests are
left, and until when.
The limits are 60 requests in 6 s, or 10 per second with a burst of 20 (nginx without a burst: 1). All clients have their defaults,
and penstock has 403 in Statuses, for GitHub. The Limiter and x/time/rate admit 10 per second.
Machine: %d processors, %s/%s, %s.

200 clients of one server of penstock (10 per second, burst 10, one key for all), denied at once: %s.

`

// page writes RESULTS.md.
func page(t *testing.T, results []result, herd string) {
	t.Helper()
	text := fmt.Sprintf(head, "`make test-finish`", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), herd) + table(results)
	if err := os.WriteFile("RESULTS.md", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table has a row for each server and crowd.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| server | workers |")
	for _, c := range contestants {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(contestants)) + "\n")
	for _, row := range rows(results) {
		fmt.Fprintf(&b, "| %s | %d |", row[0].server, row[0].workers)
		for _, c := range contestants {
			r := row.of(c.name)
			fmt.Fprintf(&b, " %d/%d/%.1f |", r.denied, r.failed, r.took.Seconds())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A row has the results of one server and crowd.
type row []result

// rows groups results by server, then by crowd.
func rows(results []result) (all []row) {
	var order []string
	byServer := map[string]map[int]row{}
	for _, r := range results {
		if byServer[r.server] == nil {
			order = append(order, r.server)
			byServer[r.server] = map[int]row{}
		}
		byServer[r.server][r.workers] = append(byServer[r.server][r.workers], r)
	}
	for _, name := range order {
		for _, workers := range crowds {
			all = append(all, byServer[name][workers])
		}
	}
	return all
}

func (r row) of(client string) result {
	for _, one := range r {
		if one.client == client {
			return one
		}
	}
	return result{}
}

// lost is the most requests that may fail at any server.
const lost = 2

// checkBars compares penstock with the retriers that lose nothing, and with x/time/rate.
func checkBars(t *testing.T, results []result) {
	t.Helper()
	for _, row := range rows(results) {
		name := fmt.Sprintf("%s, %d workers", row[0].server, row[0].workers)
		ours, limit := row.of(byDefault), lost
		fewest, fastest := 0, time.Duration(0)
		for _, rival := range []result{row.of(retryable), row.of(failsafe)} {
			if rival.failed > 0 {
				continue
			}
			if limit == lost || rival.denied < fewest {
				fewest = rival.denied
			}
			if limit == lost || rival.took < fastest {
				fastest = rival.took
			}
			limit = 0
		}
		if ours.failed > limit {
			t.Errorf("%s: %d failed, want at most %d", name, ours.failed, limit)
		}
		if limit == 0 && ours.denied > fewest {
			t.Errorf("%s: %d denied, want at most %d", name, ours.denied, fewest)
		}
		if limit == 0 && ours.took > fastest*11/10 {
			t.Errorf("%s: took %.1f s, want at most %.1f s", name, ours.took.Seconds(), fastest.Seconds()*1.1)
		}
		if r := row.of(paced); strings.HasSuffix(r.server, "*") && r.denied > 0 {
			t.Errorf("%s: %d denied with Pace", name, r.denied)
		}
		// A burst of 1 has no bar: it loses the time by which timers are late.
		r, other := row.of(limited), row.of(timeRate)
		if r.failed > other.failed || other.failed == 0 && r.took > other.took*11/10 {
			t.Errorf("%s: %s %d failed in %.1f s, %s %d in %.1f s", name, r.client, r.failed, r.took.Seconds(),
				other.client, other.failed, other.took.Seconds())
		}
	}
}
