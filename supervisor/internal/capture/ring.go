package capture

// ring keeps the last limit bytes. It grows as it is written to, up to limit.
type ring struct {
	limit int
	buf   []byte
	next  int // where the oldest byte is once buf is full
}

func (r *ring) write(p []byte) {
	if len(p) >= r.limit {
		r.buf = append(r.buf[:0], p[len(p)-r.limit:]...)
		r.next = 0
		return
	}
	if room := r.limit - len(r.buf); room > 0 {
		k := min(room, len(p))
		r.buf = append(r.buf, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		p = p[n:]
		r.next = (r.next + n) % r.limit
	}
}

// parts are the content, oldest first. They are the ring's own memory.
func (r *ring) parts() (older, newer []byte) {
	if len(r.buf) < r.limit {
		return r.buf, nil
	}
	return r.buf[r.next:], r.buf[:r.next]
}
