package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// licences are the allowed ones, each with words that only its text has.
var licences = []struct{ name, words string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD", "Redistribution and use in source and binary forms"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
}

// testsOnly is the licence of modules that only tests may use: whoever links them has to publish changed files.
const testsOnly = "MPL-2.0"

// checkLicences counts the licences of the modules whose packages the released modules compile.
func checkLicences(checkout string) (string, error) {
	linked, tested, err := make(map[string]string), make(map[string]string), error(nil)
	for _, dir := range released {
		err = errors.Join(err, modulesOf(linked, filepath.Join(checkout, dir), "-deps"), modulesOf(tested, filepath.Join(checkout, dir), "-deps", "-test"))
	}
	if err != nil {
		return "", err
	}
	counts := make(map[string]int)
	for _, module := range slices.Sorted(maps.Keys(tested)) {
		name := licenceOf(tested[module])
		if _, links := linked[module]; name == "" || name == testsOnly && links {
			err = errors.Join(err, fmt.Errorf("%s has the licence %q, which is not allowed: see %s", module, name, tested[module]))
		}
		counts[name]++
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return fmt.Sprintf("%d modules, %d of them linked: %s", len(tested), len(linked), strings.Join(texts, ", ")), err
}

// modulesOf adds the folders of the modules whose packages a module compiles.
func modulesOf(all map[string]string, dir string, flags ...string) error {
	list, err := output(dir, nil, "go", append(append([]string{"list", "-json=Module"}, flags...), "./...")...)
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(strings.NewReader(list)); ; {
		var p struct{ Module *struct{ Path, Dir string } }
		if err := decoder.Decode(&p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if p.Module != nil && p.Module.Path != root && !strings.HasPrefix(p.Module.Path, root+"/") {
			all[p.Module.Path] = p.Module.Dir
		}
	}
}

// licenceOf returns the licence in the folder of a module, or "".
func licenceOf(dir string) string {
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "licen[sc]e*"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			words := strings.Join(strings.Fields(string(text)), " ")
			for _, l := range licences {
				if strings.Contains(words, l.words) {
					return l.name
				}
			}
		}
	}
	return ""
}
