// Package routers tests penstock with routers that penstock does not import: the
// lines that the documentation of keyfunc.Route and Policy.ChargeIf gives for them.
package routers
