import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { AgentClient } from "effect-agent/client"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { clientOf, randomOf } from "./client.ts"

/** Starts a server on the files of a folder, and gives its port. */
const start = (folder: string, port: number) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ child: ChildProcess; port: number }>((resolve, reject) => {
          const script = join(import.meta.dirname, "process.ts")
          const child = spawn(
            process.execPath,
            ["--conditions", "effect-agent-source", script, folder, `${port}`],
            { stdio: ["ignore", "pipe", "inherit"] }
          )
          // A run that continues writes a line of the log before the server listens.
          createInterface(child.stdout).on("line", (line) => {
            if (/^\d+$/.test(line)) resolve({ child, port: Number(line) })
          })
          child.once("exit", () => reject(new Error("The server ended")))
        })
    ),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "killed-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const isDelta = ({ event }: AgentClient.Positioned) => event._tag === "MessageDelta"

describe("a server that is killed", { timeout: 120_000 }, () => {
  it.live("has each event once, in order, also those of the runs that continue after it", () =>
    Effect.gen(function* () {
      const random = randomOf(23)
      const directory = yield* folder
      let server = yield* start(directory, 0)
      const client = yield* clientOf(`http://127.0.0.1:${server.port}`)
      for (let round = 0; round < 4; round++) {
        const agent = yield* client.open(yield* client.sessions.create())
        const prompt = yield* Effect.forkChild(agent.prompt("hi"), { startImmediately: true })
        yield* Stream.runHead(Stream.filter(agent.state.changes, ({ runId }) => runId !== undefined))
        const { runId = "" } = yield* agent.state.get
        const seen: Array<AgentClient.Positioned> = []
        const place = 2 + Math.floor(random() * 200)
        yield* client.runs.events(runId).pipe(
          Stream.runForEach((one) =>
            Effect.gen(function* () {
              seen.push(one)
              if (seen.length !== place) return
              server.child.removeAllListeners("exit").kill("SIGKILL")
              server = yield* start(directory, server.port)
            })
          )
        )
        assert.strictEqual((yield* Fiber.join(prompt)).status, "completed")
        for (const [at, { position }] of seen.entries()) assert.isAbove(position, seen[at - 1]?.position ?? 0)
        assert.deepInclude(seen.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
        const log = yield* Stream.runCollect(client.runs.events(runId))
        assert.deepStrictEqual(
          seen.filter((one) => !isDelta(one)),
          log.filter((one) => !isDelta(one))
        )
        assert.strictEqual((yield* client.runs.get(runId)).status, "completed")
      }
    })
  )
})
