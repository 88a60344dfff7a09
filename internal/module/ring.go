// SPDX-License-Identifier: GPL-2.0

// The ring size: a parameter of the module that may change while it is loaded,
// and then holds for rings allocated later.

package module

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
)

const (
	ringParam = sysDir + "/parameters/ring_size"
	minRing   = 4 << 10
	maxRing   = 4 << 20
)

// RingSize is the size of rings allocated from now on, 0 if unknown.
func RingSize() uint64 {
	n, _ := strconv.ParseUint(readTrimmed(ringParam), 10, 64)
	return n
}

// SetRingSize sets the size of rings allocated from now on.
func SetRingSize(size uint64) error {
	err := os.WriteFile(ringParam, []byte(strconv.FormatUint(size, 10)), 0)
	if err != nil {
		return fmt.Errorf("setting the ring size: %w", err)
	}
	return nil
}

// ParseRingSize reads a size such as 65536, 64K or 1M.
func ParseRingSize(text string) (uint64, error) {
	number, shift := strings.ToUpper(text), 0
	number = strings.TrimSuffix(number, "IB")
	switch {
	case strings.HasSuffix(number, "K"):
		number, shift = strings.TrimSuffix(number, "K"), 10
	case strings.HasSuffix(number, "M"):
		number, shift = strings.TrimSuffix(number, "M"), 20
	}
	n, err := strconv.ParseUint(number, 10, 32)
	size := n << shift
	if err != nil || size < minRing || size > maxRing || bits.OnesCount64(size) != 1 {
		return 0, fmt.Errorf("ring size %q: write a power of two from 4K to 4M, such as 64K", text)
	}
	return size, nil
}
