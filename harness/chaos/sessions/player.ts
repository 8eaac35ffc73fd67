/**
 * A process with an agent that keeps its conversation in a session, and that a kill may end at any moment:
 * `player.js URL SESSION EFFECTS SEED WRITE`. It begins the conversation or continues it until the model has asked for twenty tools.
 *
 * It prints a line for each message and each end of a call that its subscriber has seen. A tool writes a line to the file EFFECTS when it
 * begins and one when it ends. At the write of the number WRITE, before it or after it, the process kills itself.
 */
import { Effect, Schema } from "effect"
import { Agent, Message, Tool, Transcript } from "effect-agent"
import { type SessionStorage, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { closeSync, openSync, writeSync } from "node:fs"
import * as Valid from "../inject/valid.ts"
import { Random } from "../Random.ts"
import * as Stores from "./stores.ts"

const [url = "", sessionId = "", effects = "", seed = "0", write = "0"] = process.argv.slice(2)
const random = new Random(Number(seed))
const print = (line: string): void => void writeSync(1, `${line}\n`)

let writes = 0
const isAfter = random.once(2)
const die = Effect.sync(() => process.kill(process.pid, "SIGKILL"))

/** A storage whose writer dies at one of its writes. */
const mortal = (storage: SessionStorage.SessionStorage): SessionStorage.SessionStorage => {
  const writer = (inner: SessionStorage.Writer): SessionStorage.Writer => ({
    append: (lines) =>
      Effect.suspend(() => {
        if (++writes !== Number(write)) return inner.append(lines)
        return isAfter ? Effect.andThen(inner.append(lines), die) : Effect.andThen(die, inner.append(lines))
      })
  })
  return {
    ...storage,
    create: (session) => Effect.map(storage.create(session), writer),
    open: (id) => Effect.map(storage.open(id), writer)
  }
}

const log = (line: string) =>
  Effect.sync(() => {
    const file = openSync(effects, "a")
    writeSync(file, `${line}\n`)
    closeSync(file)
  })

const work = Tool.make({
  name: "work",
  description: "Works.",
  params: Schema.Struct({ size: Schema.Finite }),
  execute: ({ size }) =>
    Effect.gen(function* () {
      const { toolCallId } = yield* Tool.ToolContext
      yield* log(`begin ${toolCallId}`)
      yield* Effect.sleep(random.upTo(3))
      yield* log(`end ${toolCallId}`)
      return "x".repeat(size)
    })
})

/** Asks for two tools at a time until there are twenty results. */
const model = ScriptedProvider.layer([], {
  exhausted: ({ messages }) => {
    const faults = [...Transcript.violations(messages), ...Valid.violations(messages)]
    for (const fault of faults) print(`fault ${fault}`)
    const done = messages.filter(({ role }) => role === "toolResult").length
    const call = (index: number) => ({
      name: "work",
      params: { size: random.upTo(2000) },
      id: `call_${done + index}`
    })
    return done >= 20 ? ScriptedProvider.text("Done.") : ScriptedProvider.toolCalls(call(0), call(1))
  }
})

const program = Effect.gen(function* () {
  const store = SessionStore.make(mortal(yield* Stores.open(url)))
  const began = performance.now()
  const session = yield* store.openOrCreate(sessionId)
  print(`open ${Math.round(performance.now() - began)}`)
  // As a new prompt would find the session, if it is not continued.
  const asked = [...session.restored.messages, Message.user("And now?")]
  for (const fault of Valid.violations(asked)) print(`fault ${fault}`)
  const agent = yield* Agent.make({ model: "m", tools: [work], session })
  yield* agent.subscribe((event) =>
    Effect.sync(() => {
      if (event._tag === "MessageEnd") print(`message ${event.message.id}`)
      if (event._tag === "ToolExecutionEnd") print(`ended ${event.toolCallId} ${event.outcome}`)
    })
  )
  const { messages } = yield* agent.state.get
  const last = messages.at(-1)
  const isDone = last?.role === "assistant" && Message.textOf(last) === "Done."
  if (isDone) return print("completed")
  const { status } = yield* messages.length === 0 ? agent.prompt("Work.") : agent.continue
  print(status)
}).pipe(Effect.provide(model), Effect.scoped)

await Effect.runPromise(program).catch((error: unknown) => {
  print(`failed ${String(error)}`)
  process.exitCode = 1
})
