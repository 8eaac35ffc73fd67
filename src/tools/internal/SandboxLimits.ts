/** The limits of a sandbox: the folders that its commands may change, and the paths that they cannot see. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { Environment } from "../ChildEnvironment.ts"
import * as Root from "../Root.ts"

/** All paths are real paths of existing files and folders. */
export interface Limits {
  readonly root: string
  /** The folders that commands may change, with `root`. */
  readonly writable: ReadonlyArray<string>
  /** Files and folders inside `writable` that commands must not change. */
  readonly readOnly: ReadonlyArray<string>
  /** Names that commands must not change inside `writable`, where the system can enforce it for new files too. */
  readonly protect: ReadonlyArray<string>
  readonly hidden: ReadonlyArray<Hidden>
  /** Files and folders inside hidden ones that commands can read. */
  readonly shown: ReadonlyArray<string>
  readonly network: boolean
}

interface Hidden {
  readonly path: string
  readonly isFolder: boolean
}

interface Input {
  readonly root: string
  readonly writable: ReadonlyArray<string>
  readonly protect: ReadonlyArray<string>
  readonly hidden: ReadonlyArray<string>
  readonly shown: ReadonlyArray<string>
  readonly network: boolean
}

/** Resolves all paths, and finds the protected ones. Fails if the root is not there, or the search fails. */
export const of = Effect.fnUntraced(function* (input: Input) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const root = yield* files.realPath(paths.resolve(input.root))
  const writable = yield* existing(outermost(paths, [root, paths.resolve(input.root)], input.writable))
  const hidden = yield* existing(input.hidden.map((path) => paths.resolve(root, path)))
  const isHidden = (path: string) => hidden.some((one) => Root.contains(paths, one.path, path))
  const shown = (yield* existing(input.shown)).flatMap(({ path }) => (isHidden(path) ? [path] : []))
  const folders = [root, ...writable.flatMap(({ isFolder, path }) => (isFolder ? [path] : []))]
  const isHiddenIn = (folder: string) => (path: string) =>
    hidden.some(
      (one) =>
        one.path !== folder && Root.contains(paths, folder, one.path) && Root.contains(paths, one.path, path)
    )
  const found = yield* protectedIn(folders, input.protect)
  // To mount a hidden path as a read-only one would show it.
  const readOnly = found.filter(
    (path) => !folders.some((folder) => Root.contains(paths, folder, path) && isHiddenIn(folder)(path))
  )
  const { network, protect } = input
  return { root, writable: folders, readOnly, protect, hidden, shown, network } satisfies Limits
})

/**
 * The folders that no other one contains. A command can replace a folder inside another one by a link, which
 * would make the target of the link writable for the next command.
 */
const outermost = (
  paths: Path.Path,
  roots: readonly [root: string, spelled: string],
  folders: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const all = folders.map((folder) => paths.resolve(roots[0], folder))
  const isIn = (folder: string) => (other: string) => Root.contains(paths, other, folder)
  return all.filter(
    (folder) => !roots.some(isIn(folder)) && !all.filter((other) => other !== folder).some(isIn(folder))
  )
}

/** The real paths of those that exist, each once. */
const existing = Effect.fnUntraced(function* (wanted: ReadonlyArray<string>) {
  const files = yield* FileSystem.FileSystem
  const look = (path: string) =>
    Effect.gen(function* () {
      const real = yield* files.realPath(path)
      const { type } = yield* files.stat(real)
      return [[real, { path: real, isFolder: type === "Directory" }]] as const
    }).pipe(Effect.orElseSucceed(() => []))
  const found = yield* Effect.forEach(wanted, look, { concurrency: 16 })
  return Array.from(new Map(found.flat()).values())
})

/** Folders below a writable one that the search of protected names reaches. */
const maxDepth = 5

/** The folders of `find` on the usual systems. Commands cannot change these folders. */
const systemFolders = "/usr/bin:/bin:/run/current-system/sw/bin"

/** Protected files and folders that exist. A search in `node_modules` would take too long. */
const protectedIn = Effect.fnUntraced(function* (
  folders: ReadonlyArray<string>,
  protect: ReadonlyArray<string>
): Effect.fn.Return<
  ReadonlyArray<string>,
  PlatformError,
  FileSystem.FileSystem | Path.Path | ChildProcessSpawner
> {
  const paths = yield* Path.Path
  const [first, ...others] = protect.map((name) => ["-iname", name.replace(/[\\*?[]/g, "\\$&")])
  if (first === undefined) return []
  const names = [...first, ...others.flatMap((name) => ["-o", ...name])]
  const skip = ["-name", "node_modules", "-prune"]
  const args = [
    ...folders,
    "-mindepth",
    "1",
    "-maxdepth",
    `${maxDepth}`,
    ...skip,
    "-o",
    "(",
    ...names,
    ")",
    "-prune",
    "-print0"
  ]
  const spawner = yield* ChildProcessSpawner
  const found = yield* spawner.string(
    ChildProcess.make("find", args, { env: { PATH: systemFolders }, stdin: "ignore", stderr: "ignore" })
  )
  const hooks = protect.includes(".git") ? yield* Effect.forEach(folders, hooksOf) : []
  // A command can take away the permission to list a folder. That does not hide a file whose name is known.
  const known = folders.flatMap((folder) => protect.map((name) => paths.join(folder, name)))
  const all = [...known, ...found.split("\0"), ...hooks.flatMap((folder) => folder ?? [])]
  const real = (yield* existing(all.filter((path) => path !== ""))).map(({ path }) => path)
  return real.filter((path) =>
    folders.some((folder) => folder !== path && Root.contains(paths, folder, path))
  )
})

// ───────────────────────── bubblewrap

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

// ───────────────────────── Seatbelt

export const place = "/usr/bin/sandbox-exec"

const lookup = (names: ReadonlyArray<string>): string =>
  `(allow mach-lookup ${names.map((name) => `(global-name "${name}")`).join(" ")})`

/** The arguments before the command. */
export const seatbeltArgs = (limits: Limits): ReadonlyArray<string> => ["-p", profile(limits), "--"]

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

// ───────────────────────── Secrets at home

const words = (text: string): ReadonlyArray<string> => text.split(" ")
const within = (folder: string, names: ReadonlyArray<string>) => names.map((name) => `${folder}/${name}`)

/** Programs made with Electron and browsers, which keep cookies and tokens in a folder of their name. */
const applications = [
  ...words("google-chrome chromium BraveSoftware microsoft-edge vivaldi opera"),
  ...words("Code VSCodium Cursor Windsurf sublime-text JetBrains zed"),
  ...words("Slack Signal discord Bitwarden keepassxc"),
  "Bitwarden CLI",
  "Code - Insiders",
  "Ledger Live"
]

export const names: ReadonlyArray<string> = [
  // This program: conversations of all projects, logs of runs, and the configuration of the user.
  ...words(".local/share/effect-agent .config/effect-agent"),
  // Keys for other machines, and for signatures.
  ...words(".ssh .gnupg .password-store .1password .config/op .local/share/keyrings .putty .age"),
  ...words(".local/share/kwalletd Library/Keychains .vault-token .netrc .vault_pass .ansible/vault"),
  ...words(".config/sops .config/filezilla .local/share/remmina .config/remmina .env"),
  // Accounts at clouds and services.
  ...words(".aws .azure .oci .kube .docker .fly .boto .s3cfg .databrickscfg .snowflake .dbt"),
  ...words(".config/gcloud .config/doctl .config/rclone .config/containers .config/heroku .config/hcloud"),
  ...words(".terraform.d .terraformrc .wrangler .config/.wrangler .railway .netlify .vercel .expo"),
  ...words(".local/share/com.vercel.cli .config/stripe .config/turso .config/linode-cli .config/helm"),
  ...words(".ngrok2 .config/ngrok .config/configstore .config/transmission"),
  // Accounts at places for code, packages and data.
  ...words(".npmrc .yarnrc.yml .pypirc .cargo/credentials .cargo/credentials.toml .gem/credentials"),
  ...words(".git-credentials .config/git/credentials .config/gh .config/glab-cli .config/hub"),
  ...words(".m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .bundle/config"),
  ...words(".composer/auth.json .config/composer/auth.json .nuget/NuGet/NuGet.Config .config/NuGet"),
  ...words(".cache/huggingface/token .cache/huggingface/stored_tokens .huggingface/token .kaggle"),
  ...words(".config/rubygems .local/share/gem/credentials .config/pip .pip .config/pypoetry/auth.toml"),
  ...words(".config/hatch .config/uv/credentials.toml .local/share/uv/credentials"),
  // Databases.
  ...words(".pgpass .my.cnf .mylogin.cnf .mongorc.js .mongodb"),
  // Agents.
  ...words(".claude .claude.json .codex .gemini .config/github-copilot .local/share/opencode .cursor .kiro"),
  ...words(
    ".config/opencode .continue .pi .config/goose .local/share/goose .config/crush .local/share/crush"
  ),
  ...words(".aider.conf.yml .anthropic .config/anthropic .config/openai .qwen .codeium .amazonq .factory"),
  // Browsers, mail, editors, messengers and wallets.
  ...words(".mozilla .thunderbird snap .var/app .vscode-server/data .cursor-server/data"),
  ...words("Library/Cookies Library/Mail Library/Messages Library/Safari"),
  ...words(".bitcoin .ethereum .electrum .solana .config/solana .monero"),
  ...within(".config", applications),
  ...within("Library/Application Support", [...applications, ...words("Google/Chrome Firefox")]),
  // Histories, in which people type passwords.
  ...words(".bash_history .zsh_history .python_history .node_repl_history .psql_history .irb_history"),
  ...words(".mysql_history .sqlite_history .sqlcmd_history .rediscli_history .xonsh_history .lesshst"),
  ...words(".viminfo .wget-hsts .local/share/fish/fish_history .local/share/atuin .local/state/bash"),
  ...words(".local/share/nvim/shada .local/state/nvim/shada")
]

/** Folders in hidden ones that commands need: skills of the user have programs. */
export const shown: ReadonlyArray<string> = [".config/effect-agent/skills"]

/** The folders of the home that a variable can name elsewhere. */
const moved = {
  ".config": "XDG_CONFIG_HOME",
  ".local/share": "XDG_DATA_HOME",
  ".local/state": "XDG_STATE_HOME",
  ".cache": "XDG_CACHE_HOME"
}

/** The absolute paths of names in the home folder, and in the folders that variables name in its place. */
export const paths = (env: Environment, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { HOME = "" } = env
  const elsewhere = Object.entries(moved).flatMap(([folder, variable]) => {
    const place = env[variable] ?? ""
    if (!place.startsWith("/") || place === `${HOME}/${folder}`) return []
    return names.flatMap((name) =>
      name.startsWith(`${folder}/`) ? [`${place}${name.slice(folder.length)}`] : []
    )
  })
  return [...(HOME === "" ? [] : within(HOME, names)), ...elsewhere]
}

// ───────────────────────── Folders of git

/** Whether the folder is a repository without a working tree, or a git folder with another name. */
export const isGitFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  for (const name of ["HEAD", "objects", "refs"]) {
    const has = yield* Effect.orElseSucceed(files.exists(paths.join(folder, name)), () => false)
    if (!has) return false
  }
  return true
})

/** Maximum bytes of a configuration file that `hooksOf` reads. */
const maxConfig = 64 * 1024

/** The hooks folder of a repository, if its configuration sets one. */
export const hooksOf = Effect.fnUntraced(
  function* (folder: string) {
    const files = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const config = paths.join(folder, ".git", "config")
    const info = yield* files.stat(config)
    if (info.type !== "File" || info.size > maxConfig) return undefined
    const text = yield* files.readFileString(config)
    const value = /^[ \t]*hookspath[ \t]*=([^\n]*)$/im
      .exec(text)?.[1]
      ?.replace(/[#;].*$|"/g, "")
      .trim()
    if (value === undefined || value === "") return undefined
    const hooks = paths.resolve(folder, value)
    return yield* Effect.orElseSucceed(files.realPath(hooks), () => hooks)
  },
  Effect.orElseSucceed(() => undefined)
)
