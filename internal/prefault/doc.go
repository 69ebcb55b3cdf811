// Package prefault has the start of the heap mapped by one system call, in place of a
// page fault for each page that the initialization of packages touches: these are
// hundreds, and one takes from half a microsecond to fifteen, in a virtual machine whose
// host keeps shadow page tables. It asks for a huge page, which takes less than the 256
// ordinary ones that are mapped where the kernel has none. Programs whose start is waited
// for import it for its effect. With few imports, and a path early in the alphabet, it is
// initialized before most others.
package prefault
