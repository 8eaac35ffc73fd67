/**
 * An agent that talks to a server here, in one of the four languages.
 */
import { Effect, Layer, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, type Message, type RunOptions, Tool } from "effect-agent"
import { serve, stream } from "../providers/server.ts"
import { faults, type Said, type Wire } from "./wires.ts"

export interface Setup extends Partial<RunOptions.RunOptions> {
  /** None that needs a service. */
  readonly tools?: ReadonlyArray<Tool.Tool<string, any, any, any, never>>
  readonly messages?: ReadonlyArray<Message.Message>
}

/** A tool that says what it sees. */
export const looking = Tool.make({
  name: "look",
  description: "Looks.",
  params: Schema.Struct({ n: Schema.Finite }),
  execute: () => Effect.succeed("seen")
})

/** An agent that asks this address. */
export const agentAt = (wire: Wire, baseUrl: string, setup: Setup = {}) =>
  Agent.make({ model: "m", ...setup }).pipe(
    Effect.provide(wire.layer(baseUrl).pipe(Layer.provide(FetchHttpClient.layer)))
  )

/** The server gives these answers, one for each request, and says that it is done when there is none left. */
export const talking = Effect.fnUntraced(function* (
  wire: Wire,
  answers: ReadonlyArray<Said>,
  setup: Setup = {}
) {
  const server = yield* serve((response, _, count) =>
    stream(response).end(wire.answer(answers[count - 1] ?? { text: ["done"] }).join(""))
  )
  const agent = yield* agentAt(wire, server.baseUrl, setup)
  return {
    agent,
    server,
    /** The turns of each request. */
    asked: () => server.requests.map(({ body }) => wire.turns(JSON.parse(body))),
    faults: () => server.requests.flatMap(({ body }) => faults(wire, body))
  }
})
