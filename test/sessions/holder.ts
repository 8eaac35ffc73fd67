/**
 * A process that opens a session of a folder each time its input says so, says what came of it, and closes it at the next input:
 * `holder.ts FOLDER ID`.
 */
import { Effect } from "effect"
import { storeIn } from "./folders.ts"

const [, , directory = "", sessionId = ""] = process.argv

const input = Effect.callback<void>((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
})

const round = Effect.gen(function* () {
  const store = yield* storeIn(directory)
  yield* input
  const started = performance.now()
  yield* store.open(sessionId).pipe(
    Effect.match({
      onSuccess: () => console.log(`open ${Math.round(performance.now() - started)}`),
      onFailure: ({ reason }) => console.log(reason._tag)
    })
  )
  yield* input
}).pipe(Effect.scoped)

console.log("ready")
await Effect.runPromise(Effect.forever(Effect.tap(round, () => Effect.sync(() => console.log("ready")))))
