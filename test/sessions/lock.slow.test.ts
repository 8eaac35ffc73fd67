import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Message } from "effect-agent"
import { type ChildProcess, spawn } from "node:child_process"
import { globSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileIn, folder, storeIn } from "./folders.ts"
import { said } from "./records.ts"

interface Holder {
  readonly child: ChildProcess
  /** The next line that it prints. */
  readonly line: () => Promise<string>
  readonly go: () => void
}

/** A process that opens a session when it may, and is killed with the scope. */
const holder = (directory: string) =>
  Effect.acquireRelease(
    Effect.sync((): Holder => {
      const script = join(import.meta.dirname, "holder.ts")
      const child = spawn(
        process.execPath,
        ["--conditions", "effect-agent-source", script, directory, "s1"],
        {
          stdio: ["pipe", "pipe", "inherit"]
        }
      )
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      return {
        child,
        line: async () => String((await lines.next()).value),
        go: () => void child.stdin?.write("\n")
      }
    }),
    ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
  )

const begun = (directory: string) =>
  Effect.tap(holder(directory), ({ line }) =>
    Effect.map(Effect.promise(line), (text) => assert.strictEqual(text, "ready"))
  )

const killed = ({ child }: Holder) =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        child.once("exit", resolve)
        child.kill("SIGKILL")
      })
  )

const made = Effect.gen(function* () {
  const directory = yield* folder
  const store = yield* storeIn(directory)
  yield* Effect.scoped(store.create({ sessionId: "s1" }))
  return { directory, store, lock: `${fileIn(directory)}.lock` }
})

describe("the lock of a session", () => {
  it.live("keeps a second process out at once, and is taken over when the first is killed", () =>
    Effect.gen(function* () {
      const { directory, lock, store } = yield* made
      const first = yield* begun(directory)
      first.go()
      assert.match(yield* Effect.promise(first.line), /^open/)
      assert.strictEqual(statSync(lock).mode & 0o777, 0o600)
      assert.strictEqual(JSON.parse(readFileSync(lock, "utf8")).pid, first.child.pid)
      const start = performance.now()
      const error = yield* Effect.flip(Effect.scoped(store.open("s1")))
      assert.isBelow(performance.now() - start, 1_000)
      assert.include(error.message, `process ${first.child.pid} since 20`)
      yield* killed(first)
      const again = performance.now()
      yield* Effect.scoped(
        Effect.flatMap(store.open("s1"), (session) => session.record([said(Message.user("Hi"))]))
      )
      assert.isBelow(performance.now() - again, 1_000)
      assert.deepStrictEqual(globSync("*.lock*", { cwd: directory }), [])
    }).pipe(Effect.scoped)
  )

  it.live(
    "of a dead process goes to exactly one of many that want it",
    () =>
      Effect.gen(function* () {
        const { directory, lock } = yield* made
        const racers = yield* Effect.forEach([1, 2, 3, 4], () => begun(directory), { concurrency: 4 })
        for (let round = 0; round < 50; round++) {
          // Dead, or the id of a later process, or dead while it took the place of another one.
          const dead = { pid: 2 ** 22 + 1, start: "boot/1", since: 1, token: `dead-${round}` }
          const reused = { ...dead, pid: process.pid }
          writeFileSync(lock, JSON.stringify(round % 2 === 0 ? dead : reused))
          if (round % 3 === 0) {
            writeFileSync(`${lock}.${dead.token}`, JSON.stringify({ ...dead, token: `claim-${round}` }))
          }
          for (const { go } of racers) go()
          const lines = yield* Effect.forEach(racers, ({ line }) => Effect.promise(line))
          const words = lines.map((line) => line.split(" ")[0]).sort()
          assert.deepStrictEqual(words, ["Locked", "Locked", "Locked", "open"])
          assert.isBelow(Math.max(...lines.map((line) => Number(line.split(" ")[1] ?? 0))), 1_000)
          for (const { go } of racers) go()
          yield* Effect.forEach(racers, ({ line }) => Effect.promise(line))
        }
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("that says nothing belongs to no one, once it is old", () =>
    Effect.gen(function* () {
      const { lock, store } = yield* made
      writeFileSync(lock, "")
      assert.strictEqual((yield* Effect.flip(Effect.scoped(store.open("s1")))).reason._tag, "Locked")
      yield* Effect.retry(Effect.scoped(store.open("s1")), {
        until: ({ reason }) => reason._tag !== "Locked"
      })
    }).pipe(Effect.scoped)
  )
})
