/** The profile of `sandbox-exec`, the sandbox of macOS. */
import type { Limits } from "./SandboxLimits.ts"

export const place = "/usr/bin/sandbox-exec"

const lookup = (names: ReadonlyArray<string>): string =>
  `(allow mach-lookup ${names.map((name) => `(global-name "${name}")`).join(" ")})`

/** The arguments before the command. */
export const args = (limits: Limits): ReadonlyArray<string> => ["-p", profile(limits), "--"]

/** The system applies the last rule that matches, and refuses everything without a rule. */
export const profile = ({ hidden, network, protect, readOnly, shown, writable }: Limits): string =>
  [
    "(version 1)",
    "(deny default)",
    "(allow process-exec)",
    "(allow process-fork)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow ipc-posix-sem)",
    lookup(services),
    "(allow file-read*)",
    '(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))',
    ...folders({ hidden, shown, writable }),
    ...readOnly.map((path) => `(deny file-write* (subpath ${text(path)}))`),
    ...(protect.length === 0 ? [] : writable.map((folder) => protection(folder, protect))),
    ...(network ? networkRules : [])
  ].join("\n")

/** Services that look up users and write logs. Without the others a command cannot start programs outside. */
const services = [
  "com.apple.system.opendirectoryd.libinfo",
  "com.apple.system.opendirectoryd.membership",
  "com.apple.system.logger",
  "com.apple.system.notification_center"
]

// The rule for sockets names the addresses, because it would include sockets of files (Docker) otherwise.
const networkRules = [
  "(allow system-socket)",
  '(allow network-outbound (remote ip) (literal "/private/var/run/mDNSResponder"))',
  "(allow network-inbound (local ip))",
  "(allow network-bind (local ip))",
  lookup(["com.apple.SystemConfiguration.configd", "com.apple.trustd.agent"])
]

const text = (path: string): string => `"${path.replace(/["\\]/g, "\\$&")}"`

/** A folder comes before its content, and of one path the last rule holds. */
const folders = ({ hidden, shown, writable }: Pick<Limits, "hidden" | "shown" | "writable">) =>
  [
    ...hidden.map(({ path }) => ({ path, rule: "deny file-read* file-write*" })),
    ...shown.map((path) => ({ path, rule: "allow file-read*" })),
    ...writable.map((path) => ({ path, rule: "allow file-read* file-write*" }))
  ]
    .toSorted((one, other) => one.path.length - other.path.length)
    .map(({ path, rule }) => `(${rule} (subpath ${text(path)}))`)

/** Protects names at any depth of a folder, in any case, also those that do not exist. */
const protection = (folder: string, protect: ReadonlyArray<string>): string => {
  const names = protect.map((name) =>
    Array.from(name, (char) =>
      char.toLowerCase() === char.toUpperCase()
        ? literal(char)
        : `[${char.toLowerCase()}${char.toUpperCase()}]`
    ).join("")
  )
  const pattern = `^${literal(folder)}/(.*/)?(${names.join("|")})(/|$)`
  return `(deny file-write* (regex #"${pattern.replaceAll('"', '\\"')}"))`
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
