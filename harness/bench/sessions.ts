/**
 * `node --conditions effect-agent-source harness/bench/sessions.ts`: the time and the memory that a new process takes to open a session of
 * 50,000 entries and at least 100 MB, and the cost of an append to a small and to a large session, in each kind of store.
 */
import { Effect } from "effect"
import { Message } from "effect-agent"
import { execFileSync } from "node:child_process"
import { SessionStore } from "effect-agent/sessions"
import * as Stores from "../chaos/sessions/stores.ts"
import { folder } from "../../test/sessions/folders.ts"
import { said } from "../../test/sessions/records.ts"
import * as Databases from "../../test/sql/databases.ts"
import * as Postgres from "../../test/sql/postgres.ts"

const entries = 50_000
const appends = 500
const text = "The quick brown fox jumps over the lazy dog. ".repeat(44)
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = performance.now()
    const before = process.cpuUsage()
    const value = yield* effect
    const { system, user } = process.cpuUsage(before)
    return { value, millis: performance.now() - start, cpu: Math.round((system + user) / 1_000) }
  })

const write = Effect.fnUntraced(function* (url: string) {
  const storage = yield* Stores.open(url)
  const store = SessionStore.make(storage)
  const session = yield* store.create({ sessionId: "s1" })
  const append = Effect.suspend(() => session.record([said(Message.user("Hi"))]))
  const { millis } = yield* timed(Effect.repeat(append, { times: appends - 1 }))
  for (let count = 0; count < entries - appends; count += 100) {
    const [first, ...rest] = Array.from({ length: 100 }, (_, index) =>
      said(index % 2 === 0 ? Message.user(text) : Message.assistant(text))
    )
    if (first !== undefined) yield* session.record([first, ...rest])
  }
  const [stored] = yield* storage.list()
  console.log(`${url.split(":")[0]}: ${entries} entries, ${megabytes(stored?.bytes ?? 0)}`)
  console.log(`append to a small session: ${(millis / appends).toFixed(3)} ms`)
}, Effect.scoped)

const open = Effect.fnUntraced(function* (url: string) {
  const store = SessionStore.make(yield* Stores.open(url))
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  let peak = rss
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
  const { cpu, millis, value: session } = yield* timed(store.open("s1"))
  peak = Math.max(peak, process.memoryUsage().rss)
  clearInterval(watch)
  globalThis.gc?.()
  const held = process.memoryUsage().heapUsed - heapUsed
  const append = Effect.suspend(() => session.record([said(Message.user("Hi"))]))
  const appended = yield* timed(Effect.repeat(append, { times: appends - 1 }))
  console.log(
    `open: ${Math.round(millis)} ms, ${cpu} of the CPU, ${session.restored.messages.length} messages`
  )
  console.log(`memory: ${megabytes(held)} stay, at most ${megabytes(peak - rss)} on the way`)
  console.log(`append to a large session: ${(appended.millis / appends).toFixed(3)} ms`)
}, Effect.scoped)

/** Places for a session, one in each kind of store. */
const places = Effect.gen(function* () {
  const always = [`jsonl:${yield* folder}`, yield* Databases.sqlite]
  return Postgres.isInstalled ? [...always, yield* Databases.postgres(yield* Postgres.start)] : always
})

const [, script = "", given] = process.argv
const flags = ["--conditions", "effect-agent-source", "--expose-gc"]

await Effect.runPromise(
  given === undefined
    ? Effect.gen(function* () {
        for (const url of yield* places) {
          yield* write(url)
          execFileSync(process.execPath, [...flags, script, url], { stdio: "inherit" })
        }
      }).pipe(Effect.scoped)
    : open(given)
)
