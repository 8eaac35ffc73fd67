/**
 * The tools whose schemas a request has.
 *
 * **When to use**
 *
 * `ToolSearch.layer` of `effect-agent/tool-search` provides it: with many tools, requests have the schemas of those that the model
 * searched for. Provide an implementation of your own to choose in another way.
 *
 * **Details**
 *
 * By default each request has the schemas of all tools, or of `activeTools`. A tool without a schema in the request can be called
 * all the same: the call runs if its arguments decode. To forbid calls, use `activeTools`.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type { Message } from "./Message.ts"
import type { ToolDefinition } from "./Provider.ts"
import type { RunOptions } from "./RunOptions.ts"
import type * as Tool from "./Tool.ts"

/**
 * The tools that the model may call in a turn.
 *
 * @category models
 * @since 0.2.0
 */
export interface Offer {
  /** The tools, in the order of their registration or of `activeTools`. */
  readonly definitions: ReadonlyArray<ToolDefinition>
  /** The transcript. */
  readonly messages: ReadonlyArray<Message>
  /** The options of the run. */
  readonly options: RunOptions
  /** Whether the vendor lets the model search for the tools that the request defers. */
  readonly toolSearch: boolean
}

/**
 * The tools of a request.
 *
 * @category models
 * @since 0.2.0
 */
export interface Selection {
  /** Further tools, such as one that searches. They stand before `definitions`, and the model may call them in this turn. */
  readonly tools: ReadonlyArray<Tool.Runnable>
  /**
   * Those of the offered tools whose schemas the request has, or that it defers with `deferred`. Keep their order from turn to
   * turn, so that caches hold, and give the same object for the same tool.
   */
  readonly definitions: ReadonlyArray<ToolDefinition>
}

/**
 * The service that chooses the tools of a request.
 *
 * **Details**
 *
 * The run calls it before each request. It returns `undefined` to describe all tools, which is the default.
 *
 * **Example** (Hiding the schemas of large tools)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Tool, ToolSelection } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const small = Layer.succeed(ToolSelection.ToolSelection, ({ definitions }) => ({
 *   tools: [],
 *   definitions: definitions.filter(({ parameters }) => JSON.stringify(parameters).length < 1_000)
 * }))
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 *
 * const program = Effect.gen(function* () {
 *   const script = yield* ScriptedProvider.make([ScriptedProvider.text("Hi.")])
 *   const agent = yield* Agent.make({ model: "any", tools: [ping] }).pipe(Effect.provide([script.layer, small]))
 *   yield* agent.prompt("Hello")
 *   console.log((yield* script.requests)[0]?.tools.map(({ name }) => name))
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program) // => [ 'ping' ]
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const ToolSelection = Context.Reference<(offer: Offer) => Selection | undefined>(
  "effect-agent/ToolSelection",
  { defaultValue: () => () => undefined }
)
