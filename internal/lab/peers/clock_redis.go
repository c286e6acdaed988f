package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// shim is loaded before redis-server's C library. It adds the number in the file CLOCK_STEP to the wall clock's seconds.
const shim = `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long seconds(void) {
	static volatile long *step;
	if (!step) step = mmap(0, 8, PROT_READ, MAP_SHARED, open(getenv("CLOCK_STEP"), O_RDONLY), 0);
	return *step;
}

int gettimeofday(struct timeval *tv, void *zone) {
	int failed = syscall(SYS_gettimeofday, tv, zone);
	tv->tv_sec += seconds();
	return failed;
}

int clock_gettime(clockid_t clock, struct timespec *ts) {
	int failed = syscall(SYS_clock_gettime, clock, ts);
	if (clock == CLOCK_REALTIME) ts->tv_sec += seconds();
	return failed;
}
`

// stepRedis lets servers that t starts later read a clock that the returned function steps.
func (t *trial) stepRedis() (set func(seconds int64)) {
	dir := t.TempDir()
	source, library, server := filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so"), filepath.Join(dir, "redis-server")
	step := nottest.Must(os.Create(filepath.Join(dir, "step")))
	t.Cleanup(func() { _ = step.Close() })
	set = func(seconds int64) {
		nottest.Must(step.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0))
	}
	set(0)
	nottest.Check(os.WriteFile(source, []byte(shim), 0o644))
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed for redis-server's clock: %v: %s", err, out)
	}
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s CLOCK_STEP=%s exec %s \"$@\"\n", library, step.Name(), redisServer())
	nottest.Check(os.WriteFile(server, []byte(script), 0o755))
	nottest.Check(os.Setenv("REDIS_SERVER", server))
	return set
}

// redisServer is the program of the servers that trials start.
func redisServer() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }
