//go:build !linux

package store

func onlyLinesOfThisCount() {}
