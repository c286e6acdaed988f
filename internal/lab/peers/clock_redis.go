package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

time_t time(time_t *result) {
	time_t now = syscall(SYS_time, 0) + seconds();
	if (result) *result = now;
	return now;
}
`

// stepRedis lets servers that t starts later read a clock that the returned function steps.
func stepRedis(t *trial) (set func(seconds int64) error, err error) {
	dir := t.owner.TempDir()
	step, source, library, server := filepath.Join(dir, "step"), filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so"), filepath.Join(dir, "redis-server")
	set = func(seconds int64) error {
		f, err := os.OpenFile(step, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0)
		return errors.Join(err, f.Close())
	}
	original := os.Getenv("REDIS_SERVER")
	if original == "" {
		original = "redis-server"
	}
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s CLOCK_STEP=%s exec %s \"$@\"\n", library, step, original)
	err = errors.Join(set(0), os.WriteFile(source, []byte(shim), 0o644), os.WriteFile(server, []byte(script), 0o755), os.Setenv("REDIS_SERVER", server))
	if err != nil {
		return nil, err
	}
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("a C compiler is needed for redis-server's clock: %w: %s", err, out)
	}
	return set, nil
}
