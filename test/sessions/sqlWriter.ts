/**
 * A process that opens a session of an SQL database and appends to it: `sqlWriter.ts URL SESSION`. It prints `open`, and the number of
 * each entry once that is stored.
 */
import { Effect } from "effect"
import { SqlSessionStore } from "effect-agent/sessions"
import { writeSync } from "node:fs"
import { client } from "../sql/databases.ts"

const [url = "", sessionId = ""] = process.argv.slice(2)

const print = (line: string) => Effect.sync(() => void writeSync(1, `${line}\n`))

const program = Effect.gen(function* () {
  const storage = yield* SqlSessionStore.storage
  const writer = yield* storage.open(sessionId)
  yield* print("open")
  for (let n = 0; ; n++) {
    yield* writer.append([
      { type: "message", text: `${n} a` },
      { type: "message", text: `${n} b ${"x".repeat(2000)}` }
    ])
    yield* print(String(n))
  }
})

await Effect.runPromise(Effect.scoped(Effect.provide(program, client(url)))).catch((error: unknown) => {
  writeSync(1, `${String(error)}\n`)
  process.exitCode = 1
})
