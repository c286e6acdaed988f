// Package replay runs the requests of access logs through rate limits, in the requests'
// own time. It tells which limit is right before the limit denies any client.
//
//	log files ─► source (parse, order) ─► Engine (the real middleware) ─► tally ─► report
//	                                          └─► spool ─► pass (other limits) ─► search
//
// The [Engine] decides each request once, with the middlewares and the algorithms of a
// server and a clock that stands at the request's instant. It also writes each decision
// to a spool, a temporary file of 16 bytes per decision. Further passes over the spool
// try other algorithms and other limits. So the number of keys bounds the memory, and
// the number of lines does not.
//
// # What a replay cannot know
//
//   - Clients that are denied behave otherwise than clients that are served: they wait,
//     retry, or leave. The replay sends what the log has.
//   - Where a log has whole seconds, the requests of one second come at one instant. A
//     burst then looks larger than it was.
//   - A request whose API key was unknown has no user in the log. The replay treats its
//     identity as missing.
package replay
