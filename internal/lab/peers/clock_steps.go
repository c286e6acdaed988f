//go:build steps

package main

import "time"

// setStep exists in the program that steppable builds only.
func setStep(seconds int64) { time.SetStep(seconds) }
