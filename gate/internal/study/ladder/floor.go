package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

const fastestRung = "attention/r13_wgmma_cluster"

// floor is a line for each kernel that does nothing: its time, and how far above it
// the fastest rung lies that is launched in the same way.
func (s scene) floor() []byte {
	var out bytes.Buffer
	heading(&out, []string{"kernel", "warm µs", "cold µs", "r13 above it, warm µs", "cold µs"})
	for _, k := range s.those(func(name string) bool { return strings.HasPrefix(name, "floor/") }) {
		cases := timedOn(k)
		only, cells := cases[len(cases)-1], []string{"`" + path.Base(k.Name) + "`"}
		for _, metric := range []string{warm, cold} {
			cells = append(cells, column{metric: metric, format: "%.2f", scale: 1e-3}.on(k, only))
		}
		for _, metric := range []string{warm, cold} {
			above := "–"
			least, ok := known(k, only, metric)
			if rung := s.named(fastestRung); ok && rung != nil {
				if v, ok := known(*rung, mission, metric); ok {
					above = fmt.Sprintf("%.2f", (v.Number-least.Number)/1e3)
				}
			}
			cells = append(cells, above)
		}
		line(&out, cells)
	}
	return out.Bytes()
}
