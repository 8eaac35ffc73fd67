/**
 * The tools of an application, by name: looked up, their params decoded, run.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as FailureText from "./internal/failureText.ts"
import type { ToolCall } from "./Message.ts"
import * as InvalidTool from "./internal/invalidTool.ts"
import { once } from "./internal/once.ts"
import type { ToolDefinition } from "./Provider.ts"
import * as Tool from "./Tool.ts"
import * as ToolName from "./internal/toolName.ts"
import * as ToolRun from "./internal/toolRun.ts"

export type { Executed } from "./internal/toolRun.ts"

/** The model called a tool that is not there. `known` has the names of the tools it was offered. */
export class ToolNotFound extends Schema.TaggedError<ToolNotFound>()("ToolNotFound", {
  /** The name as the model gave it. */
  toolName: Schema.String,
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const known = this.known.length === 0 ? "There are no tools." : `Tools: ${cut(this.known.join(", "))}.`
    return `Tool ${JSON.stringify(cut(this.toolName, 100))} not found. ${known}`
  }
}

/** The model called a tool with arguments it does not take. `detail` says what is wrong with them. */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  /** The name as the model gave it. */
  toolName: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Invalid arguments for tool ${JSON.stringify(cut(this.toolName, 100))}: ${cut(this.detail)}`
  }
}

/** The model reads it again with every request, and a long list of faults says no more than its start. */
const cut = (text: string, length = 1800): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`

/** A call whose tool is known and whose params are decoded: the point where guards look at it. */
export interface PreparedCall {
  readonly call: ToolCall
  readonly tool: Tool.Any
  /** The JSON the params were decoded from. */
  readonly input: Schema.Json
  readonly params: unknown
}

export class ToolRegistry extends Context.Service<
  ToolRegistry,
  {
    /**
     * Adds a tool, from the next turn on. Dies when the name is taken, as the model could not tell the two apart, and with
     * `InvalidTool` when the tool cannot work.
     */
    readonly register: <T extends Tool.Any>(tool: T) => Effect.Effect<void, never, Tool.Requirements<T>>
    /** Removes a tool, from the next turn on. `false` when there is none of that name. */
    readonly unregister: (name: string) => Effect.Effect<boolean>
    /** In the order of registration. */
    readonly definitions: Effect.Effect<ReadonlyArray<ToolDefinition>>
    /** The registered tool, if there is one: for its label and execution mode. */
    readonly get: (name: string) => Effect.Effect<Tool.Any | undefined>
    /**
     * Looks a call up and decodes its params, or the JSON given in their place. `among`: the tools the model was offered,
     * by name; default those registered now. Fails with what the model got wrong.
     */
    readonly prepare: (
      call: ToolCall,
      options?: { readonly input?: Schema.Json; readonly among?: ReadonlyMap<string, Tool.Any> }
    ) => Effect.Effect<PreparedCall, ToolNotFound | InvalidArguments>
    /**
     * Runs a prepared call in a scope of its own, with the services captured at registration under the caller's. Never
     * fails: a failure or a defect is a result, because the model is the one who can react.
     */
    readonly execute: (
      prepared: PreparedCall,
      context: Tool.ToolContext["Service"]
    ) => Effect.Effect<ToolRun.Executed>
  }
>()("effect-agent/ToolRegistry") {}

/** A registry with these tools. The services they need become requirements. */
export const make = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Effect.Effect<ToolRegistry["Service"], never, Tool.Requirements<Tools[number]>> =>
  Effect.contextWith((services: Context.Context<Tool.Requirements<Tools[number]>>) => {
    const registered = new Map<string, Tool.Any>()
    // Keyed by the tool, so that a call that was prepared before its tool was unregistered still has its services.
    const servicesOf = new WeakMap<Tool.Any, Context.Context<never>>()
    // Rebuilt when a tool comes or goes, so that an unchanged set is the same array from turn to turn.
    let definitions: ReadonlyArray<ToolDefinition> | undefined

    const add = (tool: Tool.Any, services: Context.Context<never>): Effect.Effect<void> => {
      const fault = InvalidTool.of(tool) ?? (registered.has(tool.name) ? duplicate(tool) : undefined)
      if (fault !== undefined) return Effect.die(fault)
      registered.set(tool.name, tool)
      servicesOf.set(tool, services)
      definitions = undefined
      return Effect.void
    }
    const registry = ToolRegistry.of({
      register: (tool) =>
        Effect.contextWith((services: Context.Context<Tool.Requirements<typeof tool>>) =>
          add(tool, services)
        ),
      unregister: (name) =>
        Effect.sync(() => {
          const tool = registered.get(name)
          if (tool === undefined) return false
          definitions = undefined
          return registered.delete(name)
        }),
      definitions: Effect.sync(() => (definitions ??= Array.from(registered.values(), definition))),
      get: (name) => Effect.sync(() => ToolName.find(registered, name)),
      prepare: Effect.fnUntraced(function* (call, options) {
        const among = options?.among ?? registered
        const tool = ToolName.find(among, call.name)
        if (tool === undefined)
          return yield* new ToolNotFound({ toolName: call.name, known: [...among.keys()] })
        return yield* decode(tool, call, options?.input ?? (yield* rawInput(tool, call)))
      }),
      execute: (prepared, context) => {
        const services = servicesOf.get(prepared.tool) ?? Context.empty()
        return ToolRun.run(prepared, context).pipe(
          Effect.updateContext((caller: Context.Context<never>) => Context.merge(services, caller))
        )
      }
    })
    return Effect.as(
      Effect.forEach(tools, (tool) => add(tool, services), { discard: true }),
      registry
    )
  })

const duplicate = (tool: Tool.Any) =>
  new Error(
    `Duplicate tool name: ${tool.name}. Give each tool a name of its own, or unregister the first one before.`
  )

/** A registry with these tools, as a layer. */
export const layer = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Layer.Layer<ToolRegistry, never, Tool.Requirements<Tools[number]>> =>
  Layer.effect(ToolRegistry, make(...tools))

// Once: what a provider makes of it is kept by the definition.
const definition = once(
  (tool: Tool.Any): ToolDefinition => ({
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters
  })
)

/** The arguments as the model wrote them, or as `prepareArguments` changed them. */
const rawInput = (tool: Tool.Any, call: ToolCall): Effect.Effect<Schema.Json, InvalidArguments> => {
  const { params } = call
  if (params === undefined) return Effect.fail(invalid(call, "the arguments are not valid JSON"))
  const { prepareArguments } = tool
  if (prepareArguments === undefined) return Effect.succeed(params)
  return Effect.try({
    try: () => prepareArguments(params),
    catch: (thrown) => invalid(call, FailureText.of(thrown))
  })
}

/** A check of a schema that throws refuses the params, as one that returns a fault does. */
const decode = (
  tool: Tool.Any,
  call: ToolCall,
  input: Schema.Json
): Effect.Effect<PreparedCall, InvalidArguments> =>
  Predicate.isObject(input)
    ? Effect.suspend(() => tool.decode(input)).pipe(
        Effect.mapBoth({
          onSuccess: (params): PreparedCall => ({ call, tool, input, params }),
          onFailure: ({ detail }) => invalid(call, detail)
        }),
        Effect.catchDefect((defect) => Effect.fail(invalid(call, FailureText.of(defect))))
      )
    : Effect.fail(invalid(call, "the arguments must be a JSON object"))

const invalid = (call: ToolCall, detail: string) => new InvalidArguments({ toolName: call.name, detail })
