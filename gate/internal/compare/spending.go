package compare

import (
	"fmt"
	"math"
	"sync"
)

// A spending is how a claim spends its error probability over looks. Look k may
// reject at a nominal p value of t·shape[k]; the smallest t at which any look
// rejects sums an experiment up, and exact is the exact distribution of that t
// under the null. So a p value holds at whichever look one stops, and looks
// cost what they really cost: the count is carried from look to look with the
// part cut off that has rejected already.
type spending struct {
	perArm int
	rounds []int
	shape  []float64 // 0: the look rejects nothing

	mu    sync.Mutex
	known map[float64]float64 // exact, by t
	level map[float64]float64 // nominal, by probability
}

var spendings struct {
	sync.Mutex
	of map[string]*spending
}

// spendingOf returns the one spending of a shape, which remembers what was
// worked out of it.
func spendingOf(perArm int, rounds []int, shape []float64) *spending {
	key := fmt.Sprint(perArm, rounds, shape)
	spendings.Lock()
	defer spendings.Unlock()
	s := spendings.of[key]
	if s == nil {
		if spendings.of == nil {
			spendings.of = map[string]*spending{}
		}
		s = &spending{perArm: perArm, rounds: rounds, shape: shape, known: map[float64]float64{}, level: map[float64]float64{}}
		spendings.of[key] = s
	}
	return s
}

// scaled is the t at which look k rejects a nominal p value.
func (s *spending) scaled(look int, p float64) float64 {
	if s.shape[look] == 0 {
		return math.Inf(1)
	}
	return p / s.shape[look]
}

// exact is the probability under the null that some look rejects at t or below:
// the p value of an experiment whose smallest t it is.
func (s *spending) exact(t float64) float64 {
	if math.IsInf(t, 1) {
		return 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.known[t]
	if !ok {
		p = s.crossing(t)
		s.known[t] = p
	}
	return p
}

// crossing carries the distribution of the count through the looks.
func (s *spending) crossing(t float64) float64 {
	const rounding = 1 + 1e-12 // p = t·shape must reject although t = p/shape was rounded
	one := nullOf(s.perArm, 1).pmf
	alive, crossed, at := []float64{1}, 0.0, 0
	for k, rounds := range s.rounds {
		for ; at < rounds; at++ {
			alive = convolve(alive, one)
		}
		u, ok := nullOf(s.perArm, rounds).critical(t * s.shape[k] * rounding)
		if !ok || s.shape[k] == 0 {
			continue
		}
		for i := len(alive) - 1; i >= u; i-- {
			crossed += alive[i]
			alive[i] = 0
		}
	}
	return min(1, crossed)
}

// nominal is the largest t whose probability under the null is within the given
// one, to nine digits from below; 0 where no look can reject.
func (s *spending) nominal(probability float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.level[probability]
	if ok {
		return t
	}
	low, high := 0.0, 1.0
	for range 40 {
		if middle := (low + high) / 2; s.crossing(middle) <= probability {
			low = middle
		} else {
			high = middle
		}
	}
	s.level[probability] = low
	return low
}
