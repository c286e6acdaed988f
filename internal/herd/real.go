package main

import "testing"

const realFile = "REAL.md"

func realFiles(t *testing.T) (map[string]string, error) { return nil, nil }
