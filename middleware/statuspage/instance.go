// Which process the page describes.

package statuspage

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// An instance is this process.
type instance struct {
	Name    string    `json:"name"` // of Options.Instance, or the host
	PID     int       `json:"pid"`
	Version string    `json:"version,omitempty"` // of the program
	Go      string    `json:"go"`
	Started time.Time `json:"started"` // when the page was made
}

func newInstance(name string, started time.Time) instance {
	i := instance{Name: name, PID: os.Getpid(), Go: runtime.Version(), Started: started.UTC()}
	if i.Name == "" {
		i.Name, _ = os.Hostname()
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		i.Version = info.Main.Version
	}
	return i
}
