//go:build js && wasm

// Command wasm answers the requests of the page in the browser. It defines the function penstock(method, target, body),
// which returns {status, fields, body, hold}. hold is in milliseconds.
package main

import (
	"syscall/js"

	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
)

func main() {
	tab := instruments.NewTab(nil)
	js.Global().Set("penstock", js.FuncOf(func(_ js.Value, args []js.Value) any {
		answer := tab.Answer(args[0].String(), args[1].String(), args[2].String())
		fields := make([]any, len(answer.Fields))
		for i, field := range answer.Fields {
			fields[i] = []any{field[0], field[1]}
		}
		return map[string]any{"status": answer.Status, "fields": fields, "body": answer.Body, "hold": answer.Hold.Seconds() * 1000}
	}))
	select {} // the function needs a program that runs
}
