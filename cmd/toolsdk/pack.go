package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/toolhost/toolhost/internal/atomicfile"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/toolrun"
	"github.com/toolhost/toolhost/internal/tools/pack"
)

func newPack() *cobra.Command {
	var s pack.Spec
	var file, dir string
	cmd := &cobra.Command{
		Use:   "pack [flags] BINARY|FOLDER (-o FILE.tar | --dir DIR)",
		Short: "Put a tool into one file, with manifest and hashes",
		Long: `Put a tool into a pack: the binary (or a folder that has it and what it comes
with), and a manifest with name, version, platform, tools, wished-for sandbox and
the SHA-256 of each file. A pack is a plain tar, the same bytes for the same
files, or a folder. It is not signed: pin the hash of its manifest, which is
printed.`,
		Example: "  toolsdk pack ./greet -o greet.tar",
		Args:    cmdline.Words(1, "BINARY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Source = args[0]
			if (file == "") == (dir == "") {
				return exit.Usagef("give either -o FILE.tar or --dir DIR")
			}
			return makePack(cmd, s, file, dir)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "the tar to write")
	cmd.Flags().StringVar(&dir, "dir", "", "the new folder to write")
	cmd.Flags().StringVar(&s.Binary, "binary", "", "which file of FOLDER the plugin is (default its only executable)")
	cmd.Flags().StringVar(&s.Name, "name", "", "name of the pack (default the binary's)")
	cmd.Flags().StringVar(&s.Version, "version", "", "version of the pack (default what the binary says)")
	cmd.Flags().SortFlags = false
	return cmd
}

func makePack(cmd *cobra.Command, s pack.Spec, file, dir string) error {
	if err := apart(s.Source, file+dir); err != nil {
		return usage(err)
	}
	binary, err := s.Executable()
	if err != nil {
		return usage(err)
	}
	d, err := describe(cmd, binary)
	if err != nil {
		return err
	}
	toolrun.WriteWarnings(cmd.ErrOrStderr(), d.Warnings)
	s.Tools = d.Tools
	s.Version = cmp.Or(s.Version, d.Version)
	c, err := pack.Collect(s)
	if err != nil {
		return usage(err)
	}
	if dir != "" {
		err = c.Dir(dir)
	} else {
		err = writeTar(c, file)
	}
	if err != nil {
		return usage(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s %s for %s, manifest sha256 %s\n",
		file+dir, c.Manifest.Name, c.Manifest.Version, c.Manifest.Platform, c.ManifestSHA256())
	return err
}

// apart refuses an output that is an input, under whatever name, or that lies in
// the folder that is packed.
func apart(source, output string) error {
	from, err := os.Stat(source)
	if err != nil {
		return nil // which has an error of its own
	}
	if from.IsDir() && within(output, from) {
		return fmt.Errorf("%s lies in the folder that is packed: write it elsewhere", output)
	}
	to, err := os.Stat(output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", output, err)
	case to.IsDir():
		return nil // which is refused where it is written
	case !to.Mode().IsRegular():
		return fmt.Errorf("%s is not a plain file, and a pack would take its place: write it elsewhere", output)
	case !from.IsDir() && os.SameFile(from, to):
		return fmt.Errorf("%s is the file that is packed: write the pack elsewhere", output)
	}
	return apartFromAll(source, output, to)
}

// within is whether a folder above path, links followed, is dir.
func within(path string, dir fs.FileInfo) bool {
	at, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return false // so nothing can be written there
	}
	if at, err = filepath.Abs(at); err != nil {
		return false
	}
	for ; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, dir) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// apartFromAll compares the output with every file of a folder: it may have
// another name outside.
func apartFromAll(source, output string, to fs.FileInfo) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // what cannot be packed is refused where it is read
		}
		if info, err := entry.Info(); err == nil && os.SameFile(info, to) {
			return fmt.Errorf("%s is %s, which is packed: write the pack elsewhere", output, path)
		}
		return nil
	})
}

// writeTar replaces the file only once the pack is whole.
func writeTar(c *pack.Contents, path string) error {
	if err := atomicfile.Fill(path, atomicfile.Options{Mode: 0o644}, c.Tar); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
