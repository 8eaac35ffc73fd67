/**
 * Checks the options and the messages that an application gives to an agent or a run. Types do not guard them in plain JavaScript, nor
 * where a number comes from the environment.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Message from "../Message.ts"
import * as NearestName from "./nearestName.ts"
import * as RunOptions from "../RunOptions.ts"
import { TaggedError } from "./errors.ts"

/**
 * Options or messages are not valid, and nothing has begun.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidInput extends TaggedError<InvalidInput>()("InvalidInput", {
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
 * Makes a reader of options by their schema. A member that is `undefined` counts as not given. `beside` are further option names, for the
 * advice about a misspelt one.
 */
export const reader = <A>(schema: Schema.ConstraintDecoder<A> & { readonly fields: object }) => {
  const decode = Schema.decodeUnknownResult(schema, strict)
  const names = [...Object.keys(schema.fields), ...innerNames]
  return (input: unknown, beside: ReadonlyArray<string> = []): Read<A> =>
    Result.mapError(decode(RunOptions.given(input)), ({ issue }) =>
      refused("options", faultsOf(issue, "", [...names, ...beside]))
    )
}

const strict = { errors: "all", onExcessProperty: "error", reportInput: true } as const

/** The names of the options within `limits` and `modelOptions`, with their path. */
const innerNames: ReadonlyArray<string> = [
  ...Object.keys(RunOptions.Limits.fields).map((name) => `limits.${name}`),
  ...Object.keys(RunOptions.ModelOptions.fields).map((name) => `modelOptions.${name}`)
]

/** Reads the options of a run. */
export const options = reader(RunOptions.RunOptions)

/** Reads changes of options, none of which is required. */
export const patch = reader(RunOptions.Patch)

/** Changes of options, and the names of those that are unset. */
export interface Update {
  readonly options: Partial<RunOptions.RunOptions>
  readonly unset: ReadonlyArray<string>
}

/** Reads the changes of `agent.update`. A `null` that unsets nothing is refused like any other value. */
export const update = (input: unknown): Read<Update> => {
  const unset: Array<string> = []
  const rest = (given: unknown, path: string): unknown => {
    if (!Predicate.isObject(given)) return given
    const members = Object.entries(given).flatMap(([name, value]) => {
      const full = path + name
      if (value === null && unsettable.has(full)) {
        unset.push(full)
        return []
      }
      return [[name, full === "limits" || full === "modelOptions" ? rest(value, `${full}.`) : value] as const]
    })
    return members.length === Object.keys(given).length && unset.length === 0
      ? given
      : Object.fromEntries(members)
  }
  return Result.map(patch(rest(input, "")), (options) => ({ options, unset }))
}

const unsettable: ReadonlySet<string> = new Set([
  ...Object.keys(RunOptions.RunOptions.fields).filter((name) => name !== "model"),
  ...Object.keys(RunOptions.Limits.fields).map((name) => `limits.${name}`),
  ...Object.keys(RunOptions.ModelOptions.fields).map((name) => `modelOptions.${name}`)
])

const refused = (subject: InvalidInput["subject"], faults: ReadonlyArray<string>): InvalidInput =>
  new InvalidInput({ subject, faults: faults.slice(0, 10) })
const refuse = (subject: InvalidInput["subject"], ...faults: ReadonlyArray<string>): Read<never> =>
  Result.fail(refused(subject, faults))

const unknownKey = "is not an option"
const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "UnexpectedKey"
      ? unknownKey
      : issue._tag === "MissingKey"
        ? "is missing"
        : SchemaIssue.defaultLeafHook(issue)
})

/** The faults of a value at `root`, in words. */
const faultsOf = (
  issue: SchemaIssue.Issue,
  root: string,
  known: ReadonlyArray<string> = []
): ReadonlyArray<string> =>
  (format(issue).issues ?? []).map(({ message, path = [] }) => {
    const steps = path.map((step) => String(Predicate.isObject(step) ? step["key"] : step))
    const at = steps.reduce(
      (to, step) => (/^\d+$/.test(step) ? `${to}[${step}]` : to === "" ? step : `${to}.${step}`),
      root
    )
    if (message === unknownKey) {
      // The names are those of options, not of the members of their elements.
      if (blockMember.test(at)) return `${at} ${unknownMember}`
      const hint = at.includes("[") ? "" : advice(at, steps.at(-1) ?? "", known)
      return `${at} ${message}${hint}`
    }
    if (message === "is missing") return at === "model" ? missingModel : `${at} is missing`
    const sentence = message.slice(0, 300)
    const fault = at === "" ? sentence : `${at}: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`
    return steps.at(-2) === "vendor" && at.startsWith("modelOptions.")
      ? `${fault}. ${byProvider(steps.at(-1), message)}`
      : fault
  })

const blockMember = /^(?:prompt\[\d+\]\.?|\.?)content\[/
const unknownMember =
  'is not a member of this block. Members for one vendor belong into its vendor: { "anthropic": { … } }'

const missingModel = 'model is missing. Give the id of a model, such as "gpt-5.4-mini"'

/** Shows a member of `vendor`, with the value that the message ends with, in the entry of a provider. */
const byProvider = (name: string | undefined, message: string): string => {
  const entry = `${JSON.stringify(name)}: ${/, got (\w+|"\w*")$/.exec(message)?.[1] ?? "…"}`
  return (
    "vendor holds an object for each provider id: " +
    `for the provider "openai" write vendor: { "openai": { ${entry} } } instead of vendor: { ${entry} }`
  )
}

/** Names the option that was probably meant, also one of `limits` or `modelOptions`, else the options of the same level. */
const advice = (at: string, name: string, known: ReadonlyArray<string>): string => {
  if (ofProvider.has(name)) return `. The provider takes it: OpenAi.layer({ ${name} }).`
  const byName = new Map(known.map((path) => [path.slice(path.lastIndexOf(".") + 1), path]))
  const nearest = NearestName.of(name, byName.keys()) ?? startOf(name, byName.keys())
  const folder = at.slice(0, at.length - name.length)
  const beside = known.filter((path) => path.startsWith(folder) && !path.includes(".", folder.length))
  if (nearest !== undefined) return `. Did you mean ${byName.get(nearest)}?`
  return beside.length === 0 ? "" : `. Options: ${beside.join(", ")}.`
}

const ofProvider: ReadonlySet<string> = new Set(["apiKey", "baseUrl", "headers"])

/** The known name that a longer one begins with, as `systemPrompt` does with `system`. */
const startOf = (name: string, known: Iterable<string>): string | undefined =>
  [...known].find((one) => name.startsWith(one) && /^[A-Z_]/.test(name.slice(one.length)))

/** Reads the messages of a transcript: each must be one of `Message.user`, `assistant`, `toolResult` or `custom`. */
export const messages = (input: unknown): Read<ReadonlyArray<Message.Message>> =>
  Array.isArray(input)
    ? list("messages", input)
    : refuse("messages", `expected a list of messages, got ${shown(input)}`)

const list = (
  subject: "messages" | "prompt",
  input: ReadonlyArray<unknown>,
  root = (index: number) => `${subject}[${index}]`
): Read<ReadonlyArray<Message.Message>> => {
  const is = subject === "prompt" ? isPrompt : isMessage
  const given = input.every(is) ? input : input.map(withoutUnset)
  if (!given.every(is))
    return refuse(subject, ...given.flatMap((one, index) => faultsOfMessage(one, root(index))))
  return subject === "prompt" ? whole(given, root) : Result.succeed(given)
}

/** A message in which members that are `undefined` are not given. */
const withoutUnset = (input: unknown): unknown => {
  const given = RunOptions.given(input)
  return Predicate.hasProperty(given, "content") && Array.isArray(given.content)
    ? { ...given, content: given.content.map((block) => RunOptions.given(block)) }
    : given
}

/** Checks that images and files of prompts are base64: a vendor would refuse each request of the conversation with other data. */
const whole = (prompts: ReadonlyArray<Message.Message>, root: (index: number) => string) => {
  const faults = prompts.flatMap((prompt, at) =>
    prompt.role !== "user"
      ? []
      : prompt.content.flatMap((block, index) => {
          const data = "source" in block && "data" in block.source ? block.source.data : ""
          const place = `${root(at)}.content[${index}].source.data`.replace(/^\./, "")
          return noBase64.test(data)
            ? [`${place}: expected base64 alone, got ${JSON.stringify(data.slice(0, 40))}`]
            : []
        })
  )
  return faults.length === 0 ? Result.succeed(prompts) : refuse("prompt", ...faults)
}

const noBase64 = /[^\w+/=\s-]/

/** Reads the input of `prompt`, `steer` and `followUp`. A text or a list of content blocks becomes a user message. */
export const prompt = (input: unknown, timestamp: number): Read<ReadonlyArray<Message.Message>> => {
  if (typeof input === "string") return Result.succeed([Message.user(input, timestamp)])
  if (Array.isArray(input)) {
    const areBlocks = input.length > 0 && input.every(isBlock)
    return list("prompt", areBlocks ? [{ ...Message.user("", timestamp), content: input }] : input)
  }
  return Predicate.hasProperty(input, "role")
    ? list("prompt", [input], () => "")
    : refuse("prompt", `${expectedPrompt}, got ${shown(input)}`)
}

const expectedPrompt = "expected a text, a message or a list of messages or content blocks"

const isBlock = (input: unknown): boolean =>
  Predicate.hasProperty(input, "type") && !Predicate.hasProperty(input, "role")

const faultsOfMessage = (input: unknown, root: string): ReadonlyArray<string> => {
  const isUser = Predicate.hasProperty(input, "role") && input.role === "user"
  const decoded = Result.flatMap(decodeRole(input), () => (isUser ? decodeUser : decodeMessage)(input))
  const faults = Result.isFailure(decoded) ? faultsOf(decoded.failure.issue, root) : []
  const makers = 'Message.user("…") and its like make a whole message'
  return faults.map((fault, index) => (index === faults.length - 1 ? `${fault}. ${makers}` : fault))
}

const parsing = { errors: "all", reportInput: true } as const
const role = Schema.Literals(["user", "assistant", "toolResult", "custom"]).annotate({
  expected: 'one of "user", "assistant", "toolResult", "custom"'
})
const decodeRole = Schema.decodeUnknownResult(
  Schema.Struct({ role }).annotate({ identifier: "a message" }),
  parsing
)
const decodeMessage = Schema.decodeUnknownResult(Message.Message, parsing)

/** Refuses unknown members in a message of the user: applications write these by hand, and no provider would notice the mistake. */
const isPrompt = (input: unknown): input is Message.Message =>
  isMessage(input) && (input.role !== "user" || Result.isSuccess(decodeUser(input)))

const decodeUser = Schema.decodeUnknownResult(Message.User, strict)

const known = new WeakSet<object>()
const holds = Schema.is(Message.Message)

/** Checks each message object once, and remembers the valid ones. */
export const isMessage = (input: unknown): input is Message.Message => {
  if (!Predicate.isObject(input)) return false
  if (known.has(input)) return true
  if (!holds(input)) return false
  known.add(input)
  return true
}

/** Shows a refused value in an error: the first 100 characters of a text, and no contents of an object, which may be secret. */
export const shown = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(value.slice(0, 100))
    : Predicate.isObjectOrArray(value)
      ? "an object"
      : String(value)
