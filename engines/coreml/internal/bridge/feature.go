package bridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// Feature is an input or output of a model as it describes itself.
type Feature struct {
	Name     string
	Type     DataType // 0 where the feature is no array of numbers
	Shape    []int    // the default shape
	Shapes   [][]int  // enumerated shapes; empty where there are none
	Ranges   []Bounds // one a dimension; empty where the shape is not flexible
	Optional bool
}

// Bounds are the smallest and the largest size of a dimension. Most is 0 where
// there is no upper bound.
type Bounds struct{ Least, Most int }

// The values of MLMultiArrayShapeConstraintType.
const (
	constraintEnumerated = 2
	constraintRange      = 3
)

// Takes says whether an array of this shape may be given.
func (f Feature) Takes(shape []int) bool {
	switch {
	case len(f.Shapes) > 0:
		return slices.ContainsFunc(f.Shapes, func(s []int) bool { return slices.Equal(s, shape) })
	case len(f.Ranges) > 0:
		if len(shape) != len(f.Ranges) {
			return false
		}
		for i, n := range shape {
			if n < f.Ranges[i].Least || (f.Ranges[i].Most > 0 && n > f.Ranges[i].Most) {
				return false
			}
		}
		return true
	}
	return slices.Equal(f.Shape, shape)
}

func (f Feature) String() string {
	switch {
	case f.Type == 0:
		return fmt.Sprintf("%s (no array)", f.Name)
	case len(f.Shapes) > 0:
		return fmt.Sprintf("%s (%v, one of %v)", f.Name, f.Type, f.Shapes)
	case len(f.Ranges) > 0:
		return fmt.Sprintf("%s (%v, within %v)", f.Name, f.Type, f.Ranges)
	}
	return fmt.Sprintf("%s (%v %v)", f.Name, f.Type, f.Shape)
}

// features reads an NSDictionary of MLFeatureDescription, by name in order.
func (b *Bridge) features(dictionary objc.ID) []Feature {
	keys := b.objects(b.m.AllKeys.to(dictionary))
	list := make([]Feature, len(keys))
	for i, key := range keys {
		list[i] = b.feature(b.goString(key), b.m.ObjectForKey.to(dictionary, key))
	}
	slices.SortFunc(list, func(x, y Feature) int { return strings.Compare(x.Name, y.Name) })
	return list
}

func (b *Bridge) feature(name string, description objc.ID) Feature {
	f := Feature{Name: name, Optional: b.m.IsOptional.to(description)}
	c := b.m.MultiArrayConstraint.to(description)
	if c == 0 {
		return f
	}
	f.Type = DataType(b.m.ConstraintDataType.to(c))
	f.Shape = b.ints(b.m.ConstraintShape.to(c))
	sc := b.m.ShapeConstraint.to(c)
	switch b.m.ShapeConstraintType.to(sc) {
	case constraintEnumerated:
		for _, shape := range b.objects(b.m.EnumeratedShapes.to(sc)) {
			f.Shapes = append(f.Shapes, b.ints(shape))
		}
	case constraintRange:
		for _, value := range b.objects(b.m.SizeRanges.to(sc)) {
			f.Ranges = append(f.Ranges, bounds(b.m.RangeValue.to(value)))
		}
	}
	return f.simplest()
}

// simplest writes flexibility that leaves no choice as the fixed shape it is:
// Core ML describes some fixed shapes as ranges of one size.
func (f Feature) simplest() Feature {
	if len(f.Shapes) == 1 {
		f.Shape, f.Shapes = f.Shapes[0], nil
	}
	for _, r := range f.Ranges {
		if r.Least != r.Most {
			return f
		}
	}
	if len(f.Ranges) > 0 {
		f.Shape = nil
		for _, r := range f.Ranges {
			f.Shape = append(f.Shape, r.Least)
		}
		f.Ranges = nil
	}
	return f
}

// unbounded is a size that stands for no upper bound: Core ML writes one near the
// type's largest, and no array of ours has so many elements.
const unbounded = 1 << 40

func bounds(r objc.Range) Bounds {
	least := int(min(r.Location, unbounded))
	if r.Location >= unbounded || r.Length >= unbounded {
		return Bounds{Least: least}
	}
	return Bounds{Least: least, Most: least + int(r.Length) - 1}
}
