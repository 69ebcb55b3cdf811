package supervisor

// EndIdle ends the kept processes that no call uses at present, as when they
// have been made for a configuration that holds no more. It does not wait; those
// in use go on.
func (s *Supervisor) EndIdle() { s.kept.EndIdle() }
