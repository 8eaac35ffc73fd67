import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Schedule, Stream } from "effect"
import { Agent, Message, ProviderError } from "effect-agent"
import { Fallback, Retry } from "effect-agent/resilience"
import { Cassette, ScriptedProvider } from "effect-agent/testing"

// Two scripts stand for two vendors, so that this runs offline: one is overloaded, the other answers.
const busy = (detail: string) => ScriptedProvider.fail(new ProviderError.Overloaded({ detail }))
const primary = ScriptedProvider.layer([busy("at capacity"), busy("still at capacity")], { id: "primary" })
const backup = ScriptedProvider.layer([ScriptedProvider.text("Yes: it is 4 °C.")], { id: "backup" })

/** Asks the primary twice, then the backup; a cassette keeps what came of it. */
const provider = (directory: string, mode: Cassette.Mode) =>
  Cassette.layer({ directory, mode })(
    Fallback.layer([Retry.layer({ schedule: Schedule.recurs(1) })(primary), backup])
  )

const ask = Effect.fnUntraced(function* (question: string) {
  const agent = yield* Agent.make({ model: "any" })
  yield* agent.stream(question).pipe(
    Stream.runForEach((event) =>
      Effect.sync(() => {
        if (event._tag === "ModelCallRetry") console.log(`  attempt ${event.attempt}: ${event.error.message}`)
        if (event._tag === "MessageEnd" && event.message.role === "assistant") {
          console.log(
            `  ${event.message.provider || "nobody"}: ${Message.textOf(event.message) || "(nothing)"}`
          )
        }
      })
    )
  )
}, Effect.scoped)

const program = Effect.gen(function* () {
  const directory = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
  console.log("record")
  yield* ask("Do I need a coat in Oslo?").pipe(Effect.provide(provider(directory, "record")))
  console.log("replay: nobody is asked")
  yield* ask("Do I need a coat in Oslo?").pipe(Effect.provide(provider(directory, "replay")))
  console.log("replay of another question")
  const failed = yield* Effect.flip(
    ask("Do I need a hat in Oslo?").pipe(Effect.provide(provider(directory, "replay")))
  )
  console.log(`  ${failed.message.replace(/.*differs first at /s, "differs at ")}`)
})

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NodeServices.layer)))
