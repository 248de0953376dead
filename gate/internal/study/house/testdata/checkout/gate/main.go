package main

import (
	"os/exec"

	"example.com/checkout/gate/internal/store"
)

func main() {
	s := store.Open("x")
	exec.Command("true", s.Name()).Run()
}
