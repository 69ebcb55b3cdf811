package cgroup

// write is one value for one file of a controller: what a limit comes down to.
type write struct {
	controller string
	file       string
	value      string
}

// flavour is one cgroup version's vocabulary: pure functions by controller.
type flavour struct {
	limit map[string]limiter
	// undo returns the writes that lift what limit has set, weights excepted.
	undo map[string]func(Limits) []write
}

// limiter turns limits into writes for a new group. have tells which files the
// host's controller has.
type limiter func(l Limits, have func(file string) bool) ([]write, error)

// layout holds the available controllers. One that is not in the map is missing.
type layout map[string]controllerLayout

type controllerLayout struct {
	version int // 1 or 2
	files   map[string]bool
}

func (c controllerLayout) flavour() flavour {
	if c.version == 1 {
		return flavourV1
	}
	return flavourV2
}

func (c controllerLayout) has(file string) bool { return c.files[file] }

// plan turns limits into writes, in an order that the kernel accepts on a new
// group, or says which controller or file is missing: it never drops a limit.
func (lay layout) plan(l Limits) ([]write, error) {
	var all []write
	for _, name := range allControllers {
		c, ok := lay[name]
		if !ok {
			if limit := firstLimit(name, l); limit != "" {
				return nil, missingController(name, limit)
			}
			continue
		}
		w, err := c.flavour().limit[name](l, c.has)
		if err != nil {
			return nil, err
		}
		all = append(all, w...)
	}
	return all, nil
}

// undo lists the writes that lift l for the named controllers.
func (lay layout) undo(l Limits, controllers ...string) []write {
	var all []write
	for _, name := range controllers {
		c, ok := lay[name]
		if !ok {
			continue
		}
		for _, w := range c.flavour().undo[name](l) {
			if c.has(w.file) {
				all = append(all, w)
			}
		}
	}
	return all
}

// firstLimit names the field of l that needs the controller, "" if none does.
func firstLimit(controller string, l Limits) string {
	set := map[string]bool{
		"MemoryBytes": l.MemoryBytes != 0, "Pids": l.Pids != 0, "CPUPercent": l.CPUPercent != 0,
		"CPUWeight": l.CPUWeight != 0, "IOWeight": l.IOWeight != 0, "IOMax": len(l.IOMax) != 0,
	}
	for _, f := range limitsOf[controller] {
		if set[f] {
			return f
		}
	}
	return ""
}

var limitsOf = map[string][]string{
	ctrlMemory: {"MemoryBytes"},
	ctrlPids:   {"Pids"},
	ctrlCPU:    {"CPUPercent", "CPUWeight"},
	ctrlIO:     {"IOMax", "IOWeight"},
}

func missingController(name, limit string) error {
	return &ControllerError{
		Controller: name, Limit: limit,
		Remedy: ControllerRemedy(name) + ", or remove the limit",
	}
}

func missingFile(controller, limit, file, remedy string) error {
	return &ControllerError{Controller: controller, Limit: limit, Missing: file, Remedy: remedy}
}
