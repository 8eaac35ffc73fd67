/** The command line of bubblewrap, the sandbox for Linux. */
import type { Limits } from "./SandboxLimits.ts"

/** Where the system installs it. Never a folder of `PATH`, which may be one that commands can change. */
export const places: ReadonlyArray<string> = [
  "/usr/bin/bwrap",
  "/bin/bwrap",
  "/usr/local/bin/bwrap",
  "/run/current-system/sw/bin/bwrap"
]

/**
 * Folders that get replaced by an empty one. Those of `/run` have sockets of services that run programs
 * (Docker, systemd).
 */
export const replaced: ReadonlyArray<string> = ["/tmp", "/var/tmp", "/run", "/var/run"]

/** Folders of `/run` that commands need: the programs of NixOS. */
const programs: ReadonlyArray<string> = ["/run/current-system"]

/** Files in `/run` by which commands find the servers for names of hosts. */
const resolvers: ReadonlyArray<string> = [
  "/run/systemd/resolve/stub-resolv.conf",
  "/run/systemd/resolve/resolv.conf",
  "/run/NetworkManager/resolv.conf",
  "/run/resolvconf/resolv.conf"
]

/** The arguments before the command. */
export const args = ({ hidden, network, readOnly, root, shown, writable }: Limits): ReadonlyArray<string> => [
  // All namespaces, which need one for users. The kernel kills the processes of a pid namespace with its first.
  "--unshare-user",
  "--unshare-all",
  ...(network ? ["--share-net"] : []),
  "--die-with-parent",
  "--cap-drop",
  "ALL",
  "--ro-bind",
  "/",
  "/",
  "--dev",
  "/dev",
  "--proc",
  "/proc",
  // The user root may change settings of the kernel even without capabilities.
  "--ro-bind",
  "/proc/sys",
  "/proc/sys",
  ...mounts({ hidden, readOnly, writable }, [...shown, ...programs, ...(network ? resolvers : [])]),
  "--chdir",
  root,
  "--"
]

/** A mount covers those before it. So a folder comes before its content, and of one path the last kind holds. */
const mounts = (
  { hidden, readOnly, writable }: Pick<Limits, "hidden" | "readOnly" | "writable">,
  kept: ReadonlyArray<string>
) =>
  [
    ...hidden.map(({ isFolder, path }) => ({
      path,
      args: isFolder ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path]
    })),
    ...kept.map((path) => ({ path, args: ["--ro-bind-try", path, path] })),
    ...writable.map((path) => ({ path, args: ["--bind", path, path] })),
    ...readOnly.map((path) => ({ path, args: ["--ro-bind", path, path] }))
  ]
    .toSorted((one, other) => one.path.length - other.path.length)
    .flatMap(({ args }) => args)
