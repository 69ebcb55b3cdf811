package wire

// MaxBirthBytes and MaxBirthFiles bound a request to the zygote. SCM_MAX_FD is
// 253 (unix(7)).
const (
	MaxBirthBytes = 64 << 10
	MaxBirthFiles = 250
)

// Birth asks the zygote for one launcher. Its files come with it, in this
// order: the control socket, for the zygote's answer; the group's cgroup2
// directory where Cgroup is set; the cgroup v1 `tasks` files to enter; those of
// Stage; and what becomes the launcher's descriptors 0 and up, the control socket
// once more among them.
type Birth struct {
	// Flags are clone(2)'s CLONE_NEW* flags.
	Flags int64
	// User maps InsideUID and InsideGID of a new user namespace to UID and GID
	// as the zygote sees them, and makes the launcher that user.
	User                           bool
	InsideUID, InsideGID, UID, GID int64
	// DropGroups leaves the launcher without supplementary groups.
	DropGroups bool
	Cgroup     bool
	// Lone says that the launcher's network is lo alone, and changed by nobody: it may
	// be one that was made before.
	Lone  bool
	Enter int64
	// Stage are the trees to clone, each from the file (O_PATH) that came for it;
	// they follow the launcher's other files.
	Stage []Stage
}

// Stage is one tree. Source is its real path, for messages and for a zygote in a
// mount namespace of its own, which finds the same file by it. MapUID and MapGID are the ids on the file system that are
// to appear as the launcher's own where Map is set (an id-mapped mount). Own
// says that it must be a folder, and the zygote's user's.
type Stage struct {
	Source          string
	Write, Map, Own bool
	MapUID, MapGID  int64
}

// Encode renders b as bytes.
func (b Birth) Encode() []byte {
	c := codec{}
	b.visit(&c)
	return c.buf
}

func (b *Birth) visit(c *codec) {
	for _, v := range []*int64{&b.Flags, &b.InsideUID, &b.InsideGID, &b.UID, &b.GID, &b.Enter} {
		c.number(v)
	}
	for _, v := range []*bool{&b.User, &b.DropGroups, &b.Cgroup, &b.Lone} {
		c.flag(v)
	}
	list(c, &b.Stage, func(c *codec, s *Stage) {
		c.text(&s.Source)
		for _, v := range []*bool{&s.Write, &s.Map, &s.Own} {
			c.flag(v)
		}
		c.number(&s.MapUID)
		c.number(&s.MapGID)
	})
}
