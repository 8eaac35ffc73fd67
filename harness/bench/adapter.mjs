// effect-agent, as its users call it: an agent per run, read by `agent.stream`. The interface is the judge's: `meta` and
// `run`. It imports the built package: `npm run build` first.
import { NodeHttp } from "effect-agent/node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { once } from "./adapters/once.mjs"

export const meta = { name: "effect-agent", pkg: "effect-agent", streaming: true }

let runtime
/** One provider for all runs of a process, as an application has it. */
export const runtimeOf = (baseUrl) =>
  (runtime ??= ManagedRuntime.make(
    OpenAiCompatible.layer({ id: "bench", baseUrl, apiKey: Redacted.make("x") }).pipe(
      Layer.provide(NodeHttp.layer)
    )
  ))

const toolOf = once(({ description, execute, jsonSchema, name }) =>
  Tool.fromPromise({ name, description, parameters: jsonSchema, execute })
)

/** The same for all workloads. */
export const optionsOf = ({ maxTurns, model, system, tools = [] }) => ({
  model,
  system,
  tools: tools.map(toolOf),
  toolConcurrency: 100,
  limits: { maxTurns, maxIdenticalToolCalls: Infinity }
})

export function run({ baseURL, onText, prompt, signal, ...rest }) {
  const program = Effect.scoped(
    Effect.gen(function* () {
      const agent = yield* Agent.make(optionsOf(rest))
      let text = ""
      yield* Stream.runForEachArray(agent.stream(prompt), (events) =>
        Effect.sync(() => {
          for (const event of events) {
            if (AgentEvent.isTextDelta(event)) {
              text += event.delta.delta
              onText(event.delta.delta)
            }
          }
        })
      )
      return { text }
    })
  )
  return runtimeOf(baseURL).runPromise(program, { signal })
}
