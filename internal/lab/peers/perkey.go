package main

import "sync"

// A perKey holds one limiter for each key, as programs do with limiters that know no keys. It never forgets a key.
type perKey[T any] struct {
	make func(key string) T
	mu   sync.Mutex
	all  map[string]T
}

func (p *perKey[T]) of(key string) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, found := p.all[key]
	if !found {
		if p.all == nil {
			p.all = map[string]T{}
		}
		one = p.make(key)
		p.all[key] = one
	}
	return one
}
