// Package routers tests penstock with routers that penstock does not import. It uses
// the lines that the documentation of keyfunc.Route and Policy.ChargeIf has for them. It
// also replays what real servers log.
package routers
