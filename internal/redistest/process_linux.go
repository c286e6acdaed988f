package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// dieWithParent makes the kernel kill the process when the test binary dies, however it dies.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether a SIGSTOP has reached the process.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// "pid (name) state ...": the name may hold parentheses, so the state follows the last one.
	text := string(stat)
	return strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " T")
}
