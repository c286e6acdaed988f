package main

import "time"

// A chunk has bytes on their way to an end. A chunk without bytes closes the
// connection.
type chunk struct {
	to    *end
	due   time.Duration
	order uint64
	bytes []byte
}

// chunks are a heap, in the order in which they are due.
type chunks struct {
	heap   []*chunk
	orders uint64
}

func (c *chunks) Len() int { return len(c.heap) }
func (c *chunks) Less(i, j int) bool {
	a, b := c.heap[i], c.heap[j]
	return a.due < b.due || a.due == b.due && a.order < b.order
}
func (c *chunks) Swap(i, j int) { c.heap[i], c.heap[j] = c.heap[j], c.heap[i] }
func (c *chunks) Push(x any)    { c.heap = append(c.heap, x.(*chunk)) }
func (c *chunks) Pop() any {
	last := len(c.heap) - 1
	x := c.heap[last]
	c.heap = c.heap[:last]
	return x
}
