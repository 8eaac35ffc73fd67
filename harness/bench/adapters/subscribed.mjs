// effect-agent with a subscriber that is waited for at each event, and `prompt`.
import * as Effect from "effect/Effect"
import { Agent, AgentEvent } from "effect-agent"
import { optionsOf, runtimeOf } from "../adapter.mjs"

export const meta = { name: "effect-agent, subscribed" }

export function run({ baseURL, onText, prompt, signal, ...rest }) {
  const program = Effect.scoped(
    Effect.gen(function* () {
      const agent = yield* Agent.make(optionsOf(rest))
      yield* agent.subscribe((event) =>
        AgentEvent.isTextDelta(event) ? Effect.sync(() => onText(event.delta.delta)) : Effect.void
      )
      return yield* agent.prompt(prompt)
    })
  )
  return runtimeOf(baseURL).runPromise(program, { signal })
}
