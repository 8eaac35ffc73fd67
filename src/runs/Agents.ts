/**
 * The service that makes the agent of a session.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type * as Agent from "../Agent.ts"
import { Served } from "../internal/openAgent.ts"
import type { Session } from "../Session.ts"

/**
 * The session that an agent is made for.
 *
 * @category options
 * @since 0.2.0
 */
export interface Given {
  /** The id of the session. */
  readonly sessionId: string
  /** The session, for `Agent.make`. It has the model, the system prompt and the tools that the client chose for it. */
  readonly session: Session
  /** The model that the client chose for the session, for an application with several providers. Default: none. */
  readonly model?: string
}

/**
 * The functions of the service.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Makes the agent of a session, which lives as long as the scope. A failure with `message` refuses the request. */
  readonly make: (given: Given) => Effect.Effect<Agent.Agent, { readonly message: string }, Scope.Scope>
}

/**
 * The service that makes the agent of a session.
 *
 * **Example** (Making agents by hand)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { Agents } from "effect-agent/server"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * export const AgentsLive = Layer.succeed(Agents.Agents, {
 *   make: ({ session }) =>
 *     Effect.provide(
 *       Agent.make({ model: "any", session }),
 *       ScriptedProvider.layer([ScriptedProvider.text("Yes.")])
 *     )
 * })
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class Agents extends Context.Service<Agents, Service>()("effect-agent/server/Agents") {}

/**
 * Makes a layer from a function that makes the agent of a session.
 *
 * **Details**
 *
 * The layer requires what the function requires, such as a `Provider`.
 *
 * **Example** (An agent with a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { Agents } from "effect-agent/server"
 *
 * const time = Tool.make({ name: "time", description: "The time.", execute: () => Effect.succeed("12:00") })
 *
 * export const AgentsLive = Agents.layer(({ session }) =>
 *   Agent.make({ model: "gpt-5.4-mini", tools: [time], session })
 * )
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = <E extends { readonly message: string }, R>(
  make: (given: Given) => Effect.Effect<Agent.Agent, E, R>
): Layer.Layer<Agents, never, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    Agents,
    Effect.map(Effect.context<R>(), (context) => ({
      // Only two services of the request count: the scope of the session, and that a server keeps the agent.
      make: (given: Given) =>
        Effect.updateContext(make(given), (request: Context.Context<Scope.Scope>) =>
          Context.merge(context, Context.pick(Scope.Scope, Served)(request))
        )
    }))
  )
