/**
 * Checks the input of an agent or a run: options and messages, which types do not guard in plain
 * JavaScript, nor where a number comes from the environment.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Message from "../Message.ts"
import * as NearestName from "./nearestName.ts"
import * as RunOptions from "../RunOptions.ts"

/**
 * Options or messages are not valid, and nothing has begun.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  /** The kind of input. */
  subject: Schema.Literals(["options", "messages", "prompt"]),
  /** One sentence for each fault: its path, what is expected, what was given. */
  faults: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Invalid ${this.subject}: ${this.faults.join("; ")}`
  }
}

type Read<A> = Result.Result<A, InvalidInput>

/**
 * Reads the options of an agent or a run. A member that is `undefined` counts as not given. `beside`: names that are taken
 * beside those of `RunOptions`, for the advice about a misspelt one.
 */
export const options = (input: unknown, beside: ReadonlyArray<string> = []): Read<RunOptions.RunOptions> =>
  read(decodeOptions(RunOptions.given(input)), input, beside)

/** Reads options that are laid over others, as `options` does: none is required. */
export const patch = (
  input: unknown,
  beside: ReadonlyArray<string> = []
): Read<Partial<RunOptions.RunOptions>> => read(decodePatch(RunOptions.given(input)), input, beside)

const strict = { errors: "all", onExcessProperty: "error", reportInput: true } as const
const decodeOptions = Schema.decodeUnknownResult(RunOptions.RunOptions, strict)
const decodePatch = Schema.decodeUnknownResult(RunOptions.Patch, strict)

const read = <A>(
  decoded: Result.Result<A, Schema.SchemaError>,
  input: unknown,
  beside: ReadonlyArray<string>
): Read<A> =>
  Result.mapError(
    decoded,
    ({ issue }) =>
      new InvalidInput({ subject: "options", faults: faultsOf(issue, "", [...names, ...beside], input) })
  )

/** The names of all options, those of `limits` and `modelOptions` with their path. */
const names: ReadonlyArray<string> = [
  ...Object.keys(RunOptions.RunOptions.fields),
  ...Object.keys(RunOptions.Limits.fields).map((name) => `limits.${name}`),
  ...Object.keys(RunOptions.ModelOptions.fields).map((name) => `modelOptions.${name}`)
]

const unknownKey = "is not an option"
const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "UnexpectedKey"
      ? unknownKey
      : issue._tag === "MissingKey"
        ? "is missing"
        : SchemaIssue.defaultLeafHook(issue)
})

const faultsOf = (
  issue: SchemaIssue.Issue,
  root: string,
  known: ReadonlyArray<string>,
  input?: unknown
): ReadonlyArray<string> =>
  (format(issue).issues ?? []).slice(0, 10).map(({ message, path = [] }) => {
    const steps = path.map((step) => String(Predicate.isObject(step) ? step["key"] : step))
    const at = steps.reduce(
      (to, step) => (/^\d+$/.test(step) ? `${to}[${step}]` : to === "" ? step : `${to}.${step}`),
      root
    )
    if (message === unknownKey) return `${at} ${message}. ${advice(steps.at(-1) ?? "", known)}`
    if (message === "is missing") return at === "model" ? missingModel : `${at} is missing`
    const sentence = message.slice(0, 300)
    const fault = at === "" ? sentence : `${at}: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`
    return isVendorMember(steps) ? `${fault}. ${byProvider(steps, input)}` : fault
  })

const missingModel = 'model is missing. Give the id of a model, such as "gpt-5-mini"'

const isVendorMember = (steps: ReadonlyArray<string>): boolean =>
  steps.length === 3 && steps[0] === "modelOptions" && steps[1] === "vendor"

/** Shows a member of `vendor` in the entry of a provider. */
const byProvider = (steps: ReadonlyArray<string>, input: unknown): string => {
  const value = steps.reduce<unknown>(
    (at, step) => (Predicate.hasProperty(at, step) ? at[step] : undefined),
    input
  )
  const member = JSON.stringify(steps.at(-1) ?? "")
  const entry = `${member}: ${Predicate.isObjectOrArray(value) ? "…" : shown(value)}`
  return (
    "vendor holds an object for each provider id: " +
    `for the provider "openai" write vendor: { "openai": { ${entry} } } instead of vendor: { ${entry} }`
  )
}

/** Names the option that was probably meant: also one that belongs into `limits` or `modelOptions`. */
const advice = (name: string, known: ReadonlyArray<string>): string => {
  if (ofProvider.has(name)) return `The provider takes it: OpenAi.layer({ ${name} }).`
  const byName = new Map(known.map((path) => [path.slice(path.lastIndexOf(".") + 1), path]))
  const nearest = NearestName.of(name, byName.keys()) ?? startOf(name, byName.keys())
  return nearest === undefined
    ? `Options: ${known.filter((path) => !path.includes(".")).join(", ")}.`
    : `Did you mean ${byName.get(nearest)}?`
}

const ofProvider: ReadonlySet<string> = new Set(["apiKey", "baseUrl", "headers"])

/** The known name that a longer one begins with, as `systemPrompt` does with `system`. */
const startOf = (name: string, known: Iterable<string>): string | undefined =>
  [...known].find((one) => name.startsWith(one) && /^[A-Z_]/.test(name.slice(one.length)))

/** Reads the messages of a transcript: each must be one of `Message.user`, `assistant`, `toolResult` or `custom`. */
export const messages = (input: unknown): Read<ReadonlyArray<Message.Message>> => list("messages", input)

const list = (subject: "messages" | "prompt", input: unknown): Read<ReadonlyArray<Message.Message>> => {
  if (areMessages(input)) return Result.succeed(input)
  const faults = Array.isArray(input)
    ? input.flatMap((one, index) => (isMessage(one) ? [] : faultsOfMessage(one, `${subject}[${index}]`)))
    : [`expected a list of messages, got ${shown(input)}`]
  return Result.fail(new InvalidInput({ subject, faults: faults.slice(0, 10) }))
}

/** Reads what `prompt`, `steer` and their like take. A text or a list of content blocks becomes a user message. */
export const prompt = (input: unknown, timestamp: number): Read<ReadonlyArray<Message.Message>> => {
  if (typeof input === "string") return Result.succeed([Message.user(input, timestamp)])
  if (Array.isArray(input) && input.length > 0 && input.every(isBlock)) {
    const user = { ...Message.user("", timestamp), content: input }
    return isMessage(user) ? Result.succeed([user]) : list("prompt", [user])
  }
  if (Array.isArray(input)) return list("prompt", input)
  if (isMessage(input)) return Result.succeed([input])
  const faults = Predicate.hasProperty(input, "role")
    ? faultsOfMessage(input, "")
    : [`expected a text, a message or a list of messages or content blocks, got ${shown(input)}`]
  return Result.fail(new InvalidInput({ subject: "prompt", faults }))
}

const isBlock = (input: unknown): boolean =>
  Predicate.hasProperty(input, "type") && !Predicate.hasProperty(input, "role")

const faultsOfMessage = (input: unknown, at: string): ReadonlyArray<string> => {
  if (!Predicate.isObject(input)) return [`${at}: expected a message, got ${shown(input)}`]
  const { role } = input
  const decode = typeof role === "string" ? byRole.get(role) : undefined
  if (decode === undefined) {
    const known = [...byRole.keys()].map((one) => JSON.stringify(one)).join(", ")
    return [`${at}${at === "" ? "" : "."}role: expected one of ${known}, got ${shown(role)}`]
  }
  const decoded = decode(input)
  const faults = Result.isFailure(decoded) ? faultsOf(decoded.failure.issue, at, []) : []
  const makers = 'Message.user("…") and its like make a whole message'
  return faults.map((fault, index) => (index === faults.length - 1 ? `${fault}. ${makers}` : fault))
}

const parsing = { errors: "all", reportInput: true } as const
const byRole = new Map<string, (input: unknown) => Result.Result<unknown, Schema.SchemaError>>()
byRole.set("user", Schema.decodeUnknownResult(Message.User, parsing))
byRole.set("assistant", Schema.decodeUnknownResult(Message.Assistant, parsing))
byRole.set("toolResult", Schema.decodeUnknownResult(Message.ToolResult, parsing))
byRole.set("custom", Schema.decodeUnknownResult(Message.Custom, parsing))

const known = new WeakSet<object>()
const holds = Schema.is(Message.Message)

/** Each message is looked at once. */
export const isMessage = (input: unknown): input is Message.Message => {
  if (!Predicate.isObject(input)) return false
  if (known.has(input)) return true
  if (!holds(input)) return false
  known.add(input)
  return true
}

const areMessages = (input: unknown): input is ReadonlyArray<Message.Message> =>
  Array.isArray(input) && input.every(isMessage)

/** A value that was refused, as its error names it: its first 100 characters, and of an object nothing that it holds. */
export const shown = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(value.slice(0, 100))
    : Predicate.isObjectOrArray(value)
      ? "an object"
      : String(value)
