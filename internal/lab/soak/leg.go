package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A leg is the part of a soak with one topology: a time of trouble, and the calm after it.
type leg struct {
	report    *report
	name      string // of the topology
	loses     bool   // trouble may lose data
	seed      uint64
	owner     *nottest.Owner
	topology  *topology
	instances []*instance
	books     books
	waits     waits

	calls, refused, hungUp, events, losses atomic.Int64
}

func (l *leg) String() string {
	if l.loses {
		return l.name + " loses"
	}
	return l.name + " keeps"
}

func (l *leg) say(format string, args ...any)    { l.report.say(l.String(), format, args...) }
func (l *leg) broken(format string, args ...any) { l.report.fail(l.String(), format, args...) }

// run starts everything, soaks it for about d, and ends it.
func (l *leg) run(ctx context.Context, start func(*nottest.Owner) *topology, d time.Duration) error {
	return nottest.Run(func(owner *nottest.Owner) {
		l.owner, l.topology = owner, start(owner)
		for range instances {
			l.instances = append(l.instances, newInstance(owner, l.topology))
		}
		l.soak(ctx, d)
	})
}

// soak troubles everything for about d, and judges what the limiters did.
func (l *leg) soak(ctx context.Context, d time.Duration) {
	l.books = books{begin: time.Now(), accounts: map[string]*account{}}
	watched, stopWatch := context.WithCancel(context.Background())
	defer stopWatch()
	go l.waits.watch(watched)
	working, stopWork := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	callers.Go(func() { l.work(working) })
	end := func() { stopWork(); callers.Wait() }
	defer end()

	nottest.Check(l.trouble(ctx, d))
	closedIn := l.awaitClosed()
	end()
	l.awaitTold()
	row := row{leg: l, tally: l.tally(), closedIn: closedIn, fullest: l.judgeBooks()}
	row.slowest, row.net = l.waits.judge(l.broken)
	if l.losses.Load() == 0 {
		row.audited = len(l.books.onces)
		l.audit(row.lost)
	}
	l.judgeGreedy()
	l.report.rows = append(l.report.rows, row)
	nottest.Check(ctx.Err())
}
