/**
 * A PostgreSQL server for tests, from the binaries of the system: in a temporary folder, on a free loopback port, with a password of its
 * own. It ends with its scope, and with the process of the tests even if that is killed. The database cluster of the system is not used.
 *
 * As a program, it prints the URL of a server that runs until SIGINT or SIGTERM:
 * `node --conditions effect-agent-source test/sql/postgres.ts`
 */
import { Deferred, type Duration, Effect, Redacted, type Scope } from "effect"
import { type ChildProcess, spawn, type SpawnOptions, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import {
  accessSync,
  chownSync,
  constants,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

const isProgram = (path: string) => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const list = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** The folder with `postgres` and `initdb`: one of PATH, else that of Debian's newest package. */
const bin = [
  ...(process.env["PATH"] ?? "").split(delimiter),
  ...list("/usr/lib/postgresql")
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => `/usr/lib/postgresql/${version}/bin`)
].find((folder) => isProgram(join(folder, "postgres")) && isProgram(join(folder, "initdb")))

const hasSetpriv = spawnSync("setpriv", ["--version"]).status === 0

/** PostgreSQL does not run as root: root starts it as one of these users. */
const users = /^(?:postgres|nobody):[^:]*:(\d+):(\d+):/gm
const owner = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const [found] = [...readFileSync("/etc/passwd", "utf8").matchAll(users)].toSorted(([a], [b]) =>
    a < b ? 1 : -1
  )
  return found === undefined ? undefined : { uid: Number(found[1]), gid: Number(found[2]) }
}

/** Whether the tests can start a server. */
export const isInstalled = bin !== undefined && (process.getuid?.() !== 0 || owner() !== undefined)
if (!isInstalled) console.log("There is no `postgres` binary: tests that need PostgreSQL are skipped.")

const freePort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    probe.close(() => resume(Effect.succeed(port)))
  })
})

/** What tests may lose: the server is never killed, so that it need not wait for the disk. */
const settings = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: 100,
  shared_buffers: "64MB",
  timezone: "UTC"
}

/** A server. */
export interface Server {
  readonly url: Redacted.Redacted
  /** Ends the server as a crash does, waits, and starts it again at the same address. */
  readonly restart: (pause: Duration.Input) => Effect.Effect<void>
}

const folderOf = (as: ReturnType<typeof owner>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "effect-agent-postgres-"))
      if (as !== undefined) chownSync(folder, as.uid, as.gid)
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const initialize = (folder: string, password: string, as: ReturnType<typeof owner>) =>
  Effect.sync(() => {
    const secret = join(folder, "password")
    writeFileSync(secret, password, { mode: 0o600 })
    if (as !== undefined) chownSync(secret, as.uid, as.gid)
    const options = [
      "--auth=scram-sha-256",
      `--pwfile=${secret}`,
      "-E",
      "UTF8",
      "--locale=C.UTF-8",
      "--no-sync"
    ]
    const { status, stderr } = spawnSync(
      join(bin ?? "", "initdb"),
      ["-D", join(folder, "data"), "-U", "agent", ...options],
      {
        ...as,
        cwd: folder,
        encoding: "utf8"
      }
    )
    if (status !== 0) throw new Error(`initdb: ${stderr}`)
  })

const spawned = (folder: string, port: number, as: ReturnType<typeof owner>): ChildProcess => {
  const all = { ...settings, listen_addresses: "127.0.0.1", port, unix_socket_directories: folder }
  const args = [
    "-D",
    join(folder, "data"),
    ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  ]
  const command = join(bin ?? "", "postgres")
  const user = as === undefined ? [] : ["--reuid", `${as.uid}`, "--regid", `${as.gid}`, "--clear-groups"]
  const options: SpawnOptions = { cwd: folder, stdio: ["ignore", "ignore", "pipe"] }
  // The signal reaches the server when the thread that started it is gone, however that ended.
  return hasSetpriv
    ? spawn("setpriv", ["--pdeathsig", "QUIT", ...user, "--", command, ...args], options)
    : spawn(command, args, { ...options, ...as })
}

const ready = (child: ChildProcess) =>
  Effect.gen(function* () {
    const isReady = yield* Deferred.make<void>()
    let log = ""
    child.stderr?.on("data", (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-8000)
      if (log.includes("ready to accept connections")) Deferred.doneUnsafe(isReady, Effect.void)
    })
    child.once("exit", () => Deferred.doneUnsafe(isReady, Effect.die(new Error(`postgres ended: ${log}`))))
    yield* Deferred.await(isReady)
  })

const stop = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGQUIT")
  })

/** Starts a server, which ends with the scope. */
export const start: Effect.Effect<Server, never, Scope.Scope> = Effect.gen(function* () {
  const as = owner()
  const folder = yield* folderOf(as)
  const password = randomBytes(18).toString("hex")
  yield* initialize(folder, password, as)
  const port = yield* freePort
  let child = spawned(folder, port, as)
  yield* Effect.addFinalizer(() => Effect.suspend(() => stop(child)))
  yield* ready(child)
  const again = Effect.suspend(() => ready((child = spawned(folder, port, as))))
  return {
    url: Redacted.make(`postgres://agent:${password}@127.0.0.1:${port}/postgres`),
    restart: (pause) =>
      Effect.andThen(
        Effect.suspend(() => stop(child)),
        Effect.delay(again, pause)
      )
  }
})

if (import.meta.main) {
  const main = Effect.gen(function* () {
    const { url } = yield* start
    console.log(Redacted.value(url))
    yield* Effect.callback<void>((resume) => {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resume(Effect.void))
    })
  })
  await Effect.runPromise(Effect.scoped(main))
}
