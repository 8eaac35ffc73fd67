/**
 * The typed output of one run: requests it from the model, decodes it, and counts repairs.
 *
 * The model answers with JSON by `ModelOptions.output` where the provider supports structured output. Otherwise the request has a tool
 * whose params are the output.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { OutputInvalid } from "./failureReason.ts"
import * as FailureText from "./failureText.ts"
import { isObject, type JsonObject } from "./json.ts"
import { type Assistant, textOf, type ToolCall, toolCalls } from "../Message.ts"
import * as Params from "./params.ts"
import type { ModelRequest, Provider, ToolDefinition } from "../Provider.ts"
import type { ModelOptions } from "../RunOptions.ts"
import type * as Tool from "../Tool.ts"
import { ToolContext } from "../Tool.ts"
import * as ToolRun from "./toolRun.ts"
import * as ToolOutput from "./toolOutput.ts"

/**
 * The options of a typed output.
 *
 * @category options
 * @since 0.2.0
 */
export interface OutputOptions<A> {
  /**
   * The schema of the output: an Effect Schema without services, or a Standard Schema such as one of zod. Default: none, so that
   * the run ends with any answer.
   */
  readonly output?: Params.ParamsSchema<A>
  /** How often the run asks the model to repair an output that is not valid. Default 2. */
  readonly outputRetries?: number
}

/**
 * The members that an output of type `A` adds to the result of a run.
 *
 * **Details**
 *
 * `Otherwise` are the members without an output: by default none.
 *
 * @category models
 * @since 0.2.0
 */
export type OutputOf<A, Otherwise = {}> = [A] extends [never] ? Otherwise : { readonly output: A }

const defaultRetries = 2

/** A decoded output, and its JSON. */
export interface Given<A> {
  readonly json: Schema.Json
  readonly value: A
}

/** An output that is not valid. */
export interface Fault {
  readonly detail: string
  /** The text that the model wrote. */
  readonly text: string
}

/** The part of a request that makes the model give the output: options, or a tool where the provider has no structured output. */
interface OutputRequest {
  readonly options: ModelOptions
  readonly tool?: Tool.Any
}

export class Output<A> {
  private readonly format: Format
  private readonly decode: (input: Schema.Json) => Effect.Effect<Given<A>, Params.InvalidParams>
  private readonly maxRepairs: number
  /** The tool `final_answer`; `undefined` for a provider with structured output. */
  private tool: Tool.Any | undefined
  /** The valid outputs that calls of this turn gave, by the ids of the calls. */
  private readonly given = new Map<string, Given<A>>()
  /** Whether the next request makes the model call the tool. */
  private isForced = false
  /** Whether the last request made the model call the tool. */
  private wasForced = false
  private isAbandoned = false
  /** The number of outputs that were not valid. */
  private attempts = 0
  accepted: Given<A> | undefined

  constructor(schema: Params.ParamsSchema<A>, retries = defaultRetries) {
    this.format = formatOf(schema)
    this.decode = decoder(schema, this.format)
    this.maxRepairs = retries
  }

  /** Adds the output to the model options of a turn, or returns the tool for it. Forgets the outputs of the turn before. */
  ask(
    { structuredOutput }: Provider["Service"],
    request: Pick<ModelRequest, "model" | "tools" | "options">
  ): OutputRequest {
    const { options } = request
    const { isForced } = this
    this.given.clear()
    this.isForced = false
    this.wasForced = isForced
    const isNative = this.isAbandoned || structuredOutput?.(request) === true
    const tool = isNative ? undefined : this.toolBeside(request.tools)
    this.tool = tool
    if (tool === undefined)
      return { options: this.isAbandoned ? options : { ...options, output: this.format.output } }
    return { tool, options: isForced ? { ...options, toolChoice: { name: tool.name } } : options }
  }

  /** Forces the output in the next turn if this turn, which failed, forced it. */
  repeat(): void {
    this.isForced = this.wasForced
  }

  /** Requests no output from now on, as in the turn of `wrapUp`. */
  abandon(): void {
    this.isAbandoned = true
  }

  /** Whether the text of an answer is the output, by structured output of the provider. */
  get isText(): boolean {
    return this.tool === undefined && !this.isAbandoned
  }

  get isWrapped(): boolean {
    return this.format.isWrapped
  }

  /** Whether a call gives the output. */
  isCall({ name }: Pick<ToolCall, "name">): boolean {
    return this.tool !== undefined && ToolRun.bareName(name) === this.tool.name
  }

  /** Whether one of the calls gave a valid output in this turn. */
  isGivenBy(calls: ReadonlyArray<ToolCall>): boolean {
    return calls.some(({ id }) => this.given.has(id))
  }

  /** Reads the output of an answer: from its first valid call, else from its text. */
  read(message: Assistant): Effect.Effect<Given<A>, Fault> {
    for (const { id } of toolCalls(message)) {
      const given = this.given.get(id)
      if (given !== undefined) return Effect.succeed(given)
    }
    const text = textOf(message)
    const faulty = (detail: string): Fault => ({ text, detail: `${cut[message.stopReason] ?? ""}${detail}` })
    const json = jsonOf(text)
    return Result.isFailure(json)
      ? Effect.fail(faulty(json.failure))
      : Effect.mapError(this.decode(json.success), ({ detail }) => faulty(detail))
  }

  /**
   * Counts an invalid output, and returns an instruction for the model to repair it. Fails after the last repair. `isAnswered`: the result
   * of the call names the faults already.
   */
  refuse(fault: Fault, isAnswered: boolean): Effect.Effect<string, OutputInvalid> {
    this.attempts++
    this.isForced = !isAnswered
    return this.attempts > this.maxRepairs
      ? Effect.fail(new OutputInvalid({ ...fault, attempts: this.attempts }))
      : Effect.succeed(this.instruction(fault.detail))
  }

  private instruction(detail: string): string {
    const { format, tool } = this
    return tool === undefined
      ? `Your answer is not the output that is required: ${short(detail)}\nAnswer with one JSON value, with nothing around it, of this JSON Schema:\n${JSON.stringify(format.output.schema)}`
      : `Call the tool ${tool.name} to give your final answer. A text does not count.`
  }

  /** Makes the tool `final_answer`, under a name that no other tool has. It only keeps the output, so that no hooks guard it. */
  private toolBeside(tools: ReadonlyArray<ToolDefinition>): Tool.Any {
    const { definition } = this.format
    let { name } = definition
    while (tools.some((tool) => tool.name === name)) name += "_"
    if (this.tool?.name === name) return this.tool
    const keep = (given: Given<A>) =>
      Effect.map(ToolContext, ({ toolCallId }) => {
        this.given.set(toolCallId, given)
        return accepted
      })
    return { ...definition, name, decode: this.decode, execute: keep }
  }
}

const accepted = ToolOutput.output("Accepted.", { terminate: true })

const cut: Partial<Record<Assistant["stopReason"], string>> = {
  length: "The answer was cut at its token limit. ",
  contentFilter: "The provider stopped the answer for its content. ",
  refusal: "The model refused to answer. "
}

const short = (detail: string): string => (detail.length <= 1800 ? detail : `${detail.slice(0, 1800)}…`)

// ───────────────────────── Schema

/** A schema in the form of requests. All runs share its objects, since providers cache the encoding of an object. */
interface Format {
  readonly output: NonNullable<ModelOptions["output"]>
  readonly definition: ToolDefinition
  /** The JSON Schema of the output, not wrapped. */
  readonly inner: JsonObject
  /** Whether the model gives an object whose one member is the output, since vendors accept only schemas of objects. */
  readonly isWrapped: boolean
}

const formatOf = memoize((schema: Params.ParamsSchema<any>): Format => {
  const inner = Params.describedValue(schema)
  const isWrapped = inner["type"] !== "object"
  const parameters = isWrapped ? wrapped(inner) : inner
  return {
    output: { name: "output", schema: parameters },
    definition: { name: "final_answer", description, parameters },
    inner,
    isWrapped
  }
})

const description =
  "Gives your final answer and ends your work. Call it once, when you have all that it takes. The user sees only its arguments."

const wrapped = ({ $defs, ...schema }: JsonObject): JsonObject => ({
  type: "object",
  properties: { output: schema },
  required: ["output"],
  additionalProperties: false,
  ...($defs === undefined ? {} : { $defs })
})

const decoder = <A>(schema: Params.ParamsSchema<A>, { inner, isWrapped }: Format) => {
  const { decode } = Params.reader(schema, inner)
  return (input: Schema.Json): Effect.Effect<Given<A>, Params.InvalidParams> => {
    const within = isWrapped && isObject(input) ? input["output"] : undefined
    const json = within === undefined ? input : within
    return Effect.suspend(() => decode(json)).pipe(
      Effect.map((value) => ({ json, value })),
      Effect.catchDefect((defect) => new Params.InvalidParams({ detail: FailureText.of(defect) }))
    )
  }
}

/** Reads a text that is JSON, or JSON in a Markdown fence. */
const jsonOf = (text: string): Result.Result<Schema.Json, string> => {
  try {
    return Result.succeed(JSON.parse(withoutFence(text.trim())))
  } catch (thrown) {
    return Result.fail(
      text.trim() === "" ? "The answer has no text." : `It is not JSON: ${FailureText.of(thrown)}.`
    )
  }
}

/** Removes the fence in linear time: a regular expression over a text of the model could take quadratic time. */
const withoutFence = (text: string): string => {
  const end = text.indexOf("\n")
  const isFenced = openings.has(text.slice(0, Math.max(0, end)).trimEnd()) && text.endsWith("```")
  return isFenced ? text.slice(end, -3) : text
}

const openings: ReadonlySet<string> = new Set(["```", "```json"])
