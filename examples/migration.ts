import { Effect, Schema } from "effect"
import { Agent, Loop, Run, Tool, ToolRegistry } from "effect-agent"
import { OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { ScriptedProvider } from "effect-agent/testing"

const read = Tool.make({
  name: "read",
  description: "Reads a note.",
  params: Schema.Struct({ name: Schema.String }),
  execute: ({ name }) => Effect.succeed(Tool.failure(`no note ${name}`)) // 0.1.0: Tool.failed
})
// 0.1.0: { ...read, run: … }
const logged = Tool.wrap(read, (execute) => (params) => Effect.tap(execute(params), Effect.logDebug))
const tools: ReadonlyArray<Tool.Runnable> = [logged] // 0.1.0: ReadonlyArray<Tool.Any>

// 0.1.0: OpenAiResponses.layerConfig(), and OpenAi.layerConfig()
export const providers = [OpenAi.layerConfig(), OpenAiCompatible.layerConfig(OpenAiCompatible.presets.openAi)]

// 0.1.0: FailureReason.FailureReason
const advice = (reason: Run.FailureReason) =>
  reason._tag === "LimitExceeded" ? "raise the limit" : reason.message

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({
    model: "any",
    tools,
    modelOptions: { vendor: { scripted: { seed: 7 } } } // 0.1.0: vendor: { seed: 7 }
  })
  const { text } = yield* agent.prompt("Read my note.") // 0.1.0: Message.textOf(message)
  console.log(text)
  const { messages } = yield* agent.state.get // 0.1.0: SubscriptionRef.get(agent.state)
  console.log(messages.length)
  yield* agent.steer("Then write one.")
  console.log((yield* agent.continue).text) // 0.1.0: agent.resume
  // 0.1.0: agent.resumeRun
  yield* agent.resume("approved").pipe(Effect.catchTag("NotPaused", ({ message }) => Effect.log(message)))
}).pipe(
  Effect.catchTag("RunFailed", ({ reason }) => Effect.log(advice(reason))),
  Effect.scoped
)

const script = ["read", "The note is gone.", "I wrote one."].map((text) =>
  text === "read" ? ScriptedProvider.toolCall(text, { name: "today" }) : ScriptedProvider.text(text)
)
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))

// 0.1.0: Loop.resume, and Loop.Context
export const again = (history: Loop.History) => Loop.continue(history, { model: "any" })
// 0.1.0: ToolRegistry.find(tools, name)
export const find = (name: string) => ToolRegistry.ToolRegistry.use((registry) => registry.get(name))
export const isLimit = (error: unknown) => error instanceof Run.LimitExceeded // 0.1.0: FailureReason.LimitExceeded
