/**
 * `node --conditions effect-agent-source test/bench/sessions.ts`: the time and the memory that a new process takes to open a session of
 * 50,000 entries and at least 100 MB, and the cost of an append to a small and to a large session.
 */
import { Effect } from "effect"
import { Message } from "effect-agent"
import { execFileSync } from "node:child_process"
import { statSync } from "node:fs"
import { fileIn, folder, storeIn } from "../sessions/folders.ts"
import { said } from "../sessions/records.ts"

const entries = 50_000
const appends = 500
const text = "The quick brown fox jumps over the lazy dog. ".repeat(44)
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = performance.now()
    const value = yield* effect
    return { value, millis: performance.now() - start }
  })

const write = Effect.fnUntraced(function* (directory: string) {
  const store = yield* storeIn(directory)
  const session = yield* store.create({ sessionId: "s1" })
  const append = Effect.suspend(() => session.record([said(Message.user("Hi"))]))
  const { millis } = yield* timed(Effect.repeat(append, { times: appends - 1 }))
  for (let count = 0; count < entries - appends; count += 100) {
    const [first, ...rest] = Array.from({ length: 100 }, (_, index) =>
      said(index % 2 === 0 ? Message.user(text) : Message.assistant(text))
    )
    if (first !== undefined) yield* session.record([first, ...rest])
  }
  console.log(`${entries} entries, ${megabytes(statSync(fileIn(directory)).size)}`)
  console.log(`append to a small session: ${(millis / appends).toFixed(3)} ms`)
}, Effect.scoped)

const open = Effect.fnUntraced(function* (directory: string) {
  const store = yield* storeIn(directory)
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  let peak = rss
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
  const { millis, value: session } = yield* timed(store.open("s1"))
  peak = Math.max(peak, process.memoryUsage().rss)
  clearInterval(watch)
  globalThis.gc?.()
  const held = process.memoryUsage().heapUsed - heapUsed
  const append = Effect.suspend(() => session.record([said(Message.user("Hi"))]))
  const appended = yield* timed(Effect.repeat(append, { times: appends - 1 }))
  console.log(`open: ${Math.round(millis)} ms, ${session.restored.messages.length} messages`)
  console.log(`memory: ${megabytes(held)} stay, at most ${megabytes(peak - rss)} on the way`)
  console.log(`append to a large session: ${(appended.millis / appends).toFixed(3)} ms`)
}, Effect.scoped)

const [, script = "", given] = process.argv
const flags = ["--conditions", "effect-agent-source", "--expose-gc"]

await Effect.runPromise(
  given === undefined
    ? Effect.gen(function* () {
        const directory = yield* folder
        yield* write(directory)
        execFileSync(process.execPath, [...flags, script, directory], { stdio: "inherit" })
      }).pipe(Effect.scoped)
    : open(given)
)
