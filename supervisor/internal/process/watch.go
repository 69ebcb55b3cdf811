package process

import "encoding/json"

// Watch hands on what an adapter's server announces, until the process is freed:
// tell then gets an empty method. The process is connected.
func (p *Process) Watch(tell func(method string, params json.RawMessage)) {
	p.mu.Lock()
	conn := p.conn
	p.mu.Unlock()
	p.watchers.Go(func() {
		defer tell("", nil)
		if conn != nil {
			_ = conn.Watch(p.lifetime, tell) // what announces nothing does not serve it
		}
		<-p.lifetime.Done()
	})
}
