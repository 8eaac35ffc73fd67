/**
 * Toolkits of `effect/ai`, with their handlers, as tools of an agent.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "../Tool.ts"
import * as ToolParams from "../internal/params.ts"
import * as AiParts from "./internal/AiParts.ts"

type AnyTools = Record<string, AiTool.Any>

/**
 * A toolkit, with or without its handlers.
 *
 * **Details**
 *
 * `McpClient.toolkit` makes a toolkit with its handlers.
 *
 * @category models
 * @since 0.2.0
 */
export type Source<Tools extends AnyTools> = Toolkit.Toolkit<Tools> | Toolkit.WithHandler<Tools>

/**
 * A tool of a toolkit.
 *
 * **Details**
 *
 * Its `execute` gets the params as JSON, and its handler gets them decoded.
 *
 * @category models
 * @since 0.1.0
 */
export type FromToolkit<Tools extends AnyTools> = Tool.Tool<
  string,
  AiTool.ParametersEncoded<Tools[keyof Tools]>,
  never,
  AiTool.HandlerError<Tools[keyof Tools]> | AiError.AiError,
  AiTool.HandlerServices<Tools[keyof Tools]> | Tool.ToolContext
>

/**
 * The options of the tools of a toolkit.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * `"hooks"` leaves the approval of tools with `needsApproval` to the `approveTool` hooks of the run. Default: such tools fail.
   *
   * With `"hooks"` the predicate `needsApproval` of a tool is not called.
   */
  readonly approval?: "hooks"
}

/**
 * Makes tools of a toolkit, in its order, without the tools that the vendor runs.
 *
 * **Details**
 *
 * - A toolkit without handlers requires them; a toolkit with its handlers does not.
 * - A name that providers refuse, such as `"files.read"`, becomes `"files_read"`, or `"files_read_2"` where another tool has that
 *   name. `label` is then the title of the tool, or its own name.
 * - A `preliminary` result of a handler is progress.
 * - With `failureMode: "return"` a failure is an error result in the encoding of its schema. With `"error"`, `execute` fails with it,
 *   the model reads its message, and `details` has the encoding.
 * - `toModelOutput` decides what the model reads; images stay images.
 *
 * **Example** (Running a toolkit in an agent)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool, Toolkit } from "effect/ai"
 * import { Agent, Message } from "effect-agent"
 * import { AiTools } from "effect-agent/ai"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const Weather = Toolkit.make(
 *   Tool.make("weather", {
 *     description: "The weather in a city.",
 *     parameters: Schema.Struct({ city: Schema.String }),
 *     success: Schema.String
 *   })
 * )
 * const WeatherLive = Weather.toLayer({ weather: ({ city }) => Effect.succeed(`4 °C in ${city}`) })
 *
 * const script = [ScriptedProvider.toolCall("weather", { city: "Oslo" }), ScriptedProvider.text("Take a coat.")]
 *
 * const program = Effect.gen(function* () {
 *   const tools = yield* AiTools.fromToolkit(Weather)
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", tools })
 *   const { newMessages } = yield* agent.prompt("Do I need a coat in Oslo?")
 *   return newMessages.map(Message.textOf).slice(2)
 * }).pipe(Effect.provide([WeatherLive, ScriptedProvider.layer(script)]), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ '4 °C in Oslo', 'Take a coat.' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export function fromToolkit<Tools extends AnyTools>(
  toolkit: Toolkit.WithHandler<Tools>,
  options?: Options
): Effect.Effect<ReadonlyArray<FromToolkit<Tools>>, never, SchemaServices<Tools[keyof Tools]>>
export function fromToolkit<Tools extends AnyTools>(
  toolkit: Source<Tools>,
  options?: Options
): Effect.Effect<
  ReadonlyArray<FromToolkit<Tools>>,
  never,
  AiTool.HandlersFor<Tools> | SchemaServices<Tools[keyof Tools]>
>
export function fromToolkit<Tools extends AnyTools>(
  toolkit: Source<Tools>,
  options?: Options
): Effect.Effect<
  ReadonlyArray<FromToolkit<Tools>>,
  never,
  AiTool.HandlersFor<Tools> | SchemaServices<Tools[keyof Tools]>
> {
  return Effect.gen(function* () {
    const services = yield* Effect.context<SchemaServices<Tools[keyof Tools]>>()
    const kit = yield* withHandlers(toolkit)
    const isName = (name: string): name is Extract<keyof Tools, string> => Object.hasOwn(kit.tools, name)
    const names = Object.keys(kit.tools)
      .filter(isName)
      .filter((name) => hasHandler(kit.tools[name]))
    const spelt = AiParts.accepted(names)
    return names.map((name, index) =>
      toTool(kit, { name, spelt: spelt[index] ?? name }, kit.tools[name], services, options ?? {})
    )
  })
}

/**
 * The services that the schemas of a tool need to decode its params and to encode its failures.
 *
 * @category utility types
 * @since 0.1.0
 */
export type SchemaServices<T extends AiTool.Any> =
  | T["parametersSchema"]["DecodingServices"]
  | T["failureSchema"]["EncodingServices"]

const withHandlers = <Tools extends AnyTools>(
  toolkit: Source<Tools>
): Effect.Effect<Toolkit.WithHandler<Tools>, never, AiTool.HandlersFor<Tools>> =>
  Effect.isEffect(toolkit) ? toolkit : Effect.succeed(toolkit)

const hasHandler = (tool: unknown): boolean => !AiTool.isProviderDefined(tool) || tool.requiresHandler

/** The name of a tool in its toolkit, and as providers accept it. */
interface Named {
  readonly name: string
  readonly spelt: string
}

const toTool = <Tools extends AnyTools>(
  kit: Toolkit.WithHandler<Tools>,
  { name, spelt }: Named,
  tool: Tools[keyof Tools],
  services: Context.Context<SchemaServices<Tools[keyof Tools]>>,
  { approval }: Options
): FromToolkit<Tools> => {
  const title = Option.getOrUndefined(Context.getOption(tool.annotations, AiTool.Title))
  const label = title ?? (spelt === name ? undefined : name)
  const strict = AiTool.getStrictMode(tool)
  const reader = readerOf(tool, services)
  let parameters: Schema.Json | undefined
  const call = handled(kit, name)
  const execute =
    approval === undefined && (tool.needsApproval ?? false) !== false
      ? () => Effect.succeed(refused(name))
      : call
  return {
    name: spelt,
    description: AiTool.getDescription(tool) ?? "",
    ...(label === undefined ? {} : { label }),
    ...(strict === undefined ? {} : { strict }),
    get parameters() {
      return (parameters ??= reader.parameters())
    },
    decode: reader.decode,
    execute,
    renderFailure: (failure) => failureOutput(tool, services, failure)
  }
}

/**
 * Makes a reader that checks params without decoding them, since the toolkit decodes them. It coerces params that do not decode.
 */
const readerOf = <T extends AiTool.Any>(
  tool: T,
  services: Context.Context<SchemaServices<T>>
): ToolParams.ParamsReader<any> => {
  const parameters = () => toJson(AiTool.getJsonSchema(tool))
  if (AiTool.isDynamic(tool) && tool.jsonSchema !== undefined) return ToolParams.fromJsonSchema(parameters())
  const decode = Schema.decodeUnknownEffect<T["parametersSchema"]>(tool.parametersSchema, { errors: "all" })
  const accepted = (input: Schema.Json) =>
    decode(input).pipe(
      Effect.as(input),
      Effect.mapError((error) => new ToolParams.InvalidParams({ detail: error.message })),
      Effect.updateContext((caller: Context.Context<never>) => Context.merge(services, caller))
    )
  return {
    parameters,
    decode: (input) =>
      Effect.catch(accepted(input), (invalid) =>
        ToolParams.fromJsonSchema(parameters())
          .decode(input)
          .pipe(
            Effect.flatMap(accepted),
            Effect.mapError(() => invalid)
          )
      )
  }
}

const toJson = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value))

const refused = (name: string): Tool.ToolOutput =>
  Tool.failure(`Tool ${name} needs an approval, and no hook gives one.`)

const handled =
  <Tools extends AnyTools>(kit: Toolkit.WithHandler<Tools>, name: keyof Tools) =>
  (params: AiTool.ParametersEncoded<Tools[keyof Tools]>) =>
    Effect.gen(function* () {
      const { progress, toolCallId } = yield* Tool.ToolContext
      const results = yield* kit.handle(name, params, toolCallId)
      let final = Tool.output("")
      yield* Stream.runForEach(results, (result) => {
        if (result.preliminary) return progress(outputOf(result))
        final = outputOf(result)
        return Effect.void
      })
      return final
    })

type HandlerResult = Pick<
  AiTool.HandlerResult<AiTool.Any>,
  "result" | "encodedResult" | "modelOutput" | "isFailure"
>

const outputOf = ({ encodedResult, isFailure, modelOutput, result }: HandlerResult): Tool.ToolOutput => {
  if (isFailure) return failedWith(result, encodedResult)
  const details = detailsOf(encodedResult)
  return modelOutput === undefined
    ? { ...details, ...Tool.render(encodedResult) }
    : Tool.output(modelOutput.map(AiParts.blockOfOutput), details)
}

const failureOutput = <T extends AiTool.Any>(
  tool: T,
  services: Context.Context<SchemaServices<T>>,
  failure: unknown
): Effect.Effect<Tool.ToolOutput> =>
  Schema.encodeUnknownEffect<T["failureSchema"]>(tool.failureSchema)(failure).pipe(
    Effect.option,
    Effect.updateContext((caller: Context.Context<never>) => Context.merge(services, caller)),
    Effect.map((encoded) => failedWith(failure, Option.getOrUndefined(encoded)))
  )

const failedWith = (failure: unknown, encoded: unknown): Tool.ToolOutput => {
  if (AiError.isAiError(failure)) return Tool.failure(failure.reason.message)
  const text = failure instanceof Error ? Tool.output(failure.message) : Tool.render(encoded ?? failure)
  return { ...detailsOf(encoded), ...text, isError: true }
}

const detailsOf = (encoded: unknown): Pick<Tool.ToolOutput, "details"> =>
  isJson(encoded) ? { details: encoded } : {}

const isJson = Schema.is(Schema.Json)
