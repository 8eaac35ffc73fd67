import { Effect, Schedule, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { createServer } from "node:net"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol")

/** The entry of a real server. */
export const entryOf = (name: string): string => join(root, `server-${name}/dist/index.js`)

/** A real server as a program. */
export const program = (name: string, ...args: ReadonlyArray<string>) => ({
  command: process.execPath,
  args: [entryOf(name), ...args]
})

export const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() =>
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    )
  })
})

/** The server `everything` over HTTP, which answers. */
export const overHttp = (port: number): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [entryOf("everything"), "streamableHttp"], {
        env: { ...process.env, PORT: String(port) },
        stdio: "ignore"
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  ).pipe(Effect.tap(() => answers(port)))

const answers = (port: number): Effect.Effect<void> =>
  Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/mcp`)).pipe(
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 400 }),
    Effect.orDie,
    Effect.asVoid
  )

/** The processes of this one whose command line has a text. */
export const childrenOf = async (text: string): Promise<ReadonlyArray<number>> => {
  const { readdir, readFile } = await import("node:fs/promises")
  const found: Array<number> = []
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue
    const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "")
    const status = await readFile(`/proc/${name}/status`, "utf8").catch(() => "")
    if (line.includes(text) && status.includes(`PPid:\t${process.pid}\n`)) found.push(Number(name))
  }
  return found
}
