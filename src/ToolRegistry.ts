/**
 * The tools of an application, by name: looked up, their params decoded, run.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Begin from "./Begin.ts"
import * as FailureText from "./FailureText.ts"
import type { ToolCall, ToolOutcome } from "./Message.ts"
import { once } from "./Once.ts"
import type { ToolDefinition } from "./Provider.ts"
import * as Tool from "./Tool.ts"
import * as Output from "./ToolOutput.ts"
import type { Laid } from "./ToolServices.ts"
import { ToolServices } from "./ToolServices.ts"
import { traced } from "./Work.ts"

/** The model called a tool that is not there. */
export class ToolNotFound extends Schema.TaggedError<ToolNotFound>()("ToolNotFound", {
  name: Schema.String,
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const known = this.known.length === 0 ? "There are no tools." : `Tools: ${cut(this.known.join(", "))}.`
    return `Tool ${JSON.stringify(cut(this.name, 100))} not found. ${known}`
  }
}

/** The model called a tool with arguments it does not take. */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  name: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Invalid arguments for tool ${JSON.stringify(cut(this.name, 100))}: ${cut(this.detail)}`
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

/** What came of running a call. */
export type Executed = Tool.ToolOutput & { readonly outcome: Extract<ToolOutcome, "success" | "error"> }

export class ToolRegistry extends Context.Service<
  ToolRegistry,
  {
    /** Adds a tool, from the next turn on. Dies when the name is taken: the model could not tell them apart. */
    readonly register: <T extends Tool.Any>(tool: T) => Effect.Effect<void, never, Tool.Services<T>>
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
    ) => Effect.Effect<Executed>
  }
>()("effect-agent/ToolRegistry") {}

/** A registry with these tools. The services they need become requirements. */
export const make = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Effect.Effect<ToolRegistry["Service"], never, Tool.Services<Tools[number]>> =>
  Effect.contextWith((services: Context.Context<Tool.Services<Tools[number]>>) => {
    const registered = new Map<string, Tool.Any>()
    const servicesOf = new ToolServices()
    // Rebuilt when a tool comes or goes, so that an unchanged set is the same array from turn to turn.
    let definitions: ReadonlyArray<ToolDefinition> | undefined

    /** Whether its name was free. */
    const add = (tool: Tool.Any, services: Context.Context<never>): boolean => {
      if (registered.has(tool.name)) return false
      registered.set(tool.name, tool)
      servicesOf.set(tool, services)
      definitions = undefined
      return true
    }
    const registry = ToolRegistry.of({
      register: (tool) =>
        Effect.contextWith((services: Context.Context<Tool.Services<typeof tool>>) =>
          add(tool, services) ? Effect.void : duplicate(tool)
        ),
      unregister: (name) =>
        Effect.sync(() => {
          const tool = registered.get(name)
          if (tool === undefined) return false
          definitions = undefined
          servicesOf.leave(tool)
          return registered.delete(name)
        }),
      definitions: Effect.sync(() => (definitions ??= Array.from(registered.values(), definition))),
      get: (name) => Effect.sync(() => find(registered, name)),
      prepare: (call, options) => {
        const { among = registered, input } = options ?? {}
        const tool = find(among, call.name)
        if (tool === undefined)
          return Effect.fail(new ToolNotFound({ name: call.name, known: [...among.keys()] }))
        return input === undefined ? prepareRaw(tool, call) : decode(tool, call, input)
      },
      execute: (prepared, context) => run(prepared, servicesOf.get(prepared.tool), context)
    })
    const twice = tools.find((tool) => !add(tool, services))
    return twice === undefined ? Effect.succeed(registry) : duplicate(twice)
  })

const duplicate = (tool: Tool.Any) => Effect.die(new Error(`Duplicate tool name: ${tool.name}`))

/** A registry with these tools, as a layer. */
export const layer = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Layer.Layer<ToolRegistry, never, Tool.Services<Tools[number]>> =>
  Layer.effect(ToolRegistry, make(...tools))

/** By its name, or by that with its white space in order, which models get wrong. */
export const find = (tools: ReadonlyMap<string, Tool.Any>, name: string): Tool.Any | undefined =>
  tools.get(name) ?? tools.get(name.trim().replaceAll(/\s+/g, " "))

// Once: what a provider makes of it is kept by the definition.
const definition = once(
  (tool: Tool.Any): ToolDefinition => ({
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters
  })
)

const prepareRaw = (tool: Tool.Any, call: ToolCall): Effect.Effect<PreparedCall, InvalidArguments> => {
  const { params } = call
  if (params === undefined) {
    return Effect.fail(invalid(call, "the arguments are not valid JSON"))
  }
  if (tool.prepareArguments === undefined) return decode(tool, call, params)
  const { prepareArguments } = tool
  return Effect.try({
    try: () => prepareArguments(params),
    catch: (thrown) => invalid(call, FailureText.of(thrown))
  }).pipe(Effect.flatMap((prepared) => decode(tool, call, prepared)))
}

const decode = (
  tool: Tool.Any,
  call: ToolCall,
  input: Schema.Json
): Effect.Effect<PreparedCall, InvalidArguments> =>
  Predicate.isObject(input)
    ? decodeObject(tool, call, input)
    : Effect.fail(invalid(call, "the arguments must be a JSON object"))

/** Nearly all params are decoded on the spot. A check that throws refuses the params as one that says no. */
const decodeObject = (
  tool: Tool.Any,
  call: ToolCall,
  input: Schema.Json
): Effect.Effect<PreparedCall, InvalidArguments> => {
  const prepared = (params: unknown): PreparedCall => ({ call, tool, input, params })
  const decoded = tool.decode(input)
  if (Begin.isKnown(decoded) && Exit.isSuccess(decoded)) return Effect.succeed(prepared(decoded.value))
  return decoded.pipe(
    Effect.mapBoth({ onSuccess: prepared, onFailure: ({ detail }) => invalid(call, detail) }),
    Effect.catchDefect((defect) => Effect.fail(invalid(call, FailureText.of(defect))))
  )
}

const invalid = (call: ToolCall, detail: string) => new InvalidArguments({ name: call.name, detail })

const run = (
  { call, params, tool }: PreparedCall,
  services: Laid,
  context: Tool.ToolContext["Service"]
): Effect.Effect<Executed> => {
  const running = tool.run(params)
  // Around its scope: within, every call would have a caller of its own.
  const supplied = (caller: Context.Context<never>) =>
    Context.add(services(caller), Tool.ToolContext, context)
  const work = Effect.suspend(() =>
    running.pipe(
      Effect.updateContext(supplied),
      Effect.matchCauseEffect({
        onSuccess: (output) => Effect.succeed(executed(output)),
        onFailure: (cause) => died(tool, cause)
      }),
      traced(`execute_tool ${tool.name}`, {
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": tool.name,
          "gen_ai.tool.call.id": call.id
        }
      })
    )
  )
  const begin = Begin.wayOf(running)
  if (begin === undefined) return work
  return Begin.direct(
    work,
    (caller) => (tell) =>
      begin(supplied(caller))((exit) => {
        if (Exit.isSuccess(exit)) tell(Exit.succeed(executed(exit.value)))
        else Begin.goOn(caller, () => died(tool, exit.cause), tell)
      })
  )
}

const executed = (output: Tool.ToolOutput): Executed => ({
  ...output,
  content: output.content.map(Output.bounded),
  outcome: output.isError === true ? "error" : "success"
})

/** A defect is told in few words, and logged whole. An interruption stays one. */
const died = (tool: Tool.Any, cause: Cause.Cause<never>): Effect.Effect<Executed> => {
  const defect = Cause.findDefect(cause)
  if (Result.isFailure(defect)) return Effect.failCause(cause)
  return Effect.logError(`Tool ${tool.name} died`, Cause.die(defect.success)).pipe(
    // There are defects that no logger can write.
    Effect.catchDefect(() => Effect.void),
    Effect.map(() =>
      executed(Tool.failed(`Tool ${tool.name} failed unexpectedly: ${FailureText.firstLine(defect.success)}`))
    )
  )
}
