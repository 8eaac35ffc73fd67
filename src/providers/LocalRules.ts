/**
 * A provider without a language model, for trying an agent without network and key.
 *
 * It parses a prompt by a few fixed rules, calls the tools of the agent, and answers from their results with
 * templates. Equal prompts get equal answers.
 *
 * @since 0.1.0
 */
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as Stream from "effect/Stream"
import { type StopReason, textOf, type ToolResult } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import * as Usage from "../Usage.ts"

/**
 * A description of the sentences that the provider understands.
 *
 * A prompt may join several with "and", "then", commas or line ends.
 *
 * @since 0.1.0
 * @category constants
 */
export const verbs =
  'read FILE; list FOLDER; find "TEXT" in PATH; count lines in FILE, files in FOLDER or "TEXT" in PATH; ' +
  'replace "OLD" with "NEW" in FILE; run COMMAND'

/**
 * The answer to any other prompt, with stop reason `refusal`.
 *
 * @since 0.1.0
 * @category constants
 */
export const refusal =
  "I am local/rules, not a language model, and can only read, list, find text, count, edit by exact text and run: " +
  "for anything else set a key (such as OPENAI_API_KEY) or start a local server (such as Ollama)."

/**
 * The provider `local`, which serves one model, `rules`, for every model id of a request.
 *
 * **Example** (Running the provider without a layer)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Provider } from "effect-agent"
 * import { LocalRules } from "effect-agent/providers"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "rules" })
 *     const { status } = yield* agent.prompt("Hello!")
 *     console.log(status) // => completed
 *   })
 * )
 *
 * await Effect.runPromise(program.pipe(Effect.provideService(Provider.Provider, LocalRules.provider)))
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export const provider: Provider["Service"] = Provider.of({
  id: "local",
  stream: (request) => Stream.suspend(() => Stream.fromArray(answer(request)))
})

/**
 * The `Provider` layer of `provider`.
 *
 * **Example** (Listing a folder without a model)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { LocalRules } from "effect-agent/providers"
 * import { Tools } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "rules", tools: Tools.make({ root: "." }) })
 *     const { newMessages } = yield* agent.prompt("count files in .")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * await Effect.runPromise(program.pipe(Effect.provide(Layer.merge(LocalRules.layer, NodeServices.layer))))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer: Layer.Layer<Provider> = Layer.succeed(Provider, provider)

/** One tool call. With `counts` the answer contains only their number. */
interface Step {
  readonly tool: string
  readonly params: { readonly [name: string]: string }
  readonly counts?: "lines" | "entries" | "matches"
}

const answer = ({ messages }: ModelRequest): ReadonlyArray<ModelEvent> => {
  const asked = messages.findLastIndex(({ role }) => role === "user")
  const results = messages.slice(asked + 1).filter((message) => message.role === "toolResult")
  // The user or a hook refused a call: the answer is empty and tries nothing else.
  if (results.some(({ outcome }) => outcome === "rejected" || outcome === "blocked")) return reply("stop", [])

  const prompt = messages[asked]
  const steps = prompt === undefined ? undefined : parse(textOf(prompt))
  if (steps === undefined) return say("refusal", refusal)
  const next = results.some(({ isError }) => isError) ? [] : batchOf(steps.slice(results.length))
  return next.length > 0 ? call(next, messages.length) : say("stop", reportOf(steps, results))
}

/** A step that changes something runs alone and in order. Steps that only read run together. */
const batchOf = (left: ReadonlyArray<Step>): ReadonlyArray<Step> => {
  const change = left.findIndex(({ tool }) => tool === "edit" || tool === "shell")
  return change === -1 ? left : left.slice(0, Math.max(change, 1))
}

// Quoted text is replaced by its number between NULs while the sentence is parsed, so that no word in it
// matches.
const quotes = /`[^`]+`|"[^"]+"|“[^“”]+”|(?<=^|\s)'[^']+'(?=$|[\s,.;:])/g
const text = "(\\0\\d+\\0)"
const one = "(\\0\\d+\\0|[^\\s\\0,;]*[^\\s\\0,;:])"
const many = `(${one}(?:(?:, and |, | and )${one})*)`

/** A separator of clauses, matched as a whole for linear time. It separates only if a verb follows. */
const between = /(?:[\s,;]|\b(?:and|then)\b)+/gi
const parting = /[,;\n]|and|then/i
const verb = /(?:read|show|cat|list|ls|find|search|grep|count|replace|run)\b/iy

/** The pattern of a clause, its tool, and the params that its groups are. A missing group is ".". */
type Form = readonly [pattern: string, tool: string, params: ReadonlyArray<string>, counts?: Step["counts"]]
const forms: ReadonlyArray<Form> = [
  [`(?:read|show|cat)(?: the)?(?: files?)? ${many}`, "read", ["path"]],
  [`(?:list|ls)(?: the)?(?: files)?(?:(?: in| of)?(?: the)? ${many}(?: folders?)?)?`, "list", ["path"]],
  [`(?:find|search|grep)(?: for)?(?: the)?(?: text)? ${one}(?: in ${one})?`, "grep", ["pattern", "path"]],
  [`count(?: the)? lines (?:in|of) ${one}`, "read", ["path"], "lines"],
  [`count(?: the)? (?:files|entries) (?:in|of) ${one}`, "list", ["path"], "entries"],
  [`count(?: the)?(?: text)? ${text}(?: in ${one})?`, "grep", ["pattern", "path"], "matches"],
  [`replace ${text} (?:with|by) ${text} in ${one}`, "edit", ["oldText", "newText", "path"]],
  ["run ([^]+)", "shell", ["command"]]
]

/** Compiled from `forms` when the first prompt is parsed. */
let patterns: ReadonlyArray<RegExp> | undefined

const parse = (prompt: string): ReadonlyArray<Step> | undefined => {
  const kept: Array<string> = []
  const words = prompt.replace(/\0|\n\n<stdin>\n[^]*$/g, "")
  const masked = words.replace(quotes, (quote) => `\0${kept.push(quote) - 1}\0`)
  // A value that is one quote loses its quotation marks. A quote inside a longer value keeps them for the
  // shell.
  const open = (value: string): string =>
    value.replaceAll(/\0(\d+)\0/g, (mark, at) => kept[at]?.slice(...(mark === value ? [1, -1] : [])) ?? "")
  const clauses = clausesOf(masked.replace(/^\s*(?:(?:please|now|can you|could you)\s+)*/i, ""))
  const steps = clauses.map((clause) => stepsOf(clause.trim().replace(/(?<=[\w\0/])[.!?]+$/, "")))
  if (steps.some(({ length }) => length === 0)) return undefined
  return steps.flat().map((step) => ({ ...step, params: Record.map(step.params, open) }))
}

const clausesOf = (sentence: string): ReadonlyArray<string> => {
  const clauses: Array<string> = []
  let begun = 0
  for (const { 0: gap, index } of sentence.matchAll(between)) {
    verb.lastIndex = index + gap.length
    if (!parting.test(gap) || !verb.test(sentence)) continue
    clauses.push(sentence.slice(begun, index))
    begun = index + gap.length
  }
  return [...clauses, sentence.slice(begun)]
}

const stepsOf = (clause: string): ReadonlyArray<Step> => {
  patterns ??= forms.map(([source]) => new RegExp(`^${source}$`, "i"))
  for (const [index, [, tool, params, counts]] of forms.entries()) {
    const found = patterns[index]?.exec(clause) ?? null
    if (found === null) continue
    const [first = ".", ...rest] = found.slice(1)
    return (params[0] === "path" ? first.split(/, and |, | and /) : [first]).map((part) => ({
      tool,
      params: Object.fromEntries(params.map((name, index) => [name, [part, ...rest][index] ?? "."])),
      ...(counts === undefined ? {} : { counts })
    }))
  }
  return []
}

const reportOf = (steps: ReadonlyArray<Step>, results: ReadonlyArray<ToolResult>): string => {
  const left = steps.slice(results.length).map((step) => `Not done: ${titleOf(step)}`)
  return [...results.flatMap((result, index) => linesOf(result, steps[index])), ...left].join("\n")
}

const titleOf = ({ params: { command, path, pattern }, tool }: Step): string =>
  [tool, command ?? pattern, path].filter((part) => part !== undefined).join(" ")

const linesOf = (result: ToolResult, step: Step | undefined): ReadonlyArray<string> => {
  if (step === undefined) return []
  const [title, lines, { details }] = [titleOf(step), textOf(result).split("\n"), result]
  const isShort = step.tool === "edit" || (result.isError && step.tool !== "shell")
  if (isShort) return [`${title}: ${lines[0] ?? ""}`]
  const unit = step.counts ?? ""
  const counted = Predicate.hasProperty(details, unit) ? details[unit] : lines.length
  if (step.counts !== undefined) return [`${title}: ${counted} ${unit}`]
  // The first lines. The tool result has all of them.
  const more = lines.length > 12 ? [`  … ${lines.length - 12} more lines`] : []
  return [`${title}:`, ...lines.slice(0, 12).map((line) => `  ${line}`), ...more]
}

const call = (steps: ReadonlyArray<Step>, turn: number): ReadonlyArray<ModelEvent> => {
  const calls = steps.flatMap(({ params, tool: name }, contentIndex): ReadonlyArray<ModelEvent> => {
    const rawArguments = JSON.stringify(name === "grep" ? { ...params, literal: true } : params)
    const id = `rules-${turn}-${contentIndex}`
    return [
      { _tag: "ToolCallStart", contentIndex, id, name },
      { _tag: "ToolCallEnd", contentIndex, rawArguments }
    ]
  })
  return reply("toolUse", calls)
}

/** Streams a few words at a time, as a model does. */
const say = (stopReason: StopReason, text: string): ReadonlyArray<ModelEvent> => {
  const at = { contentIndex: 0 }
  const deltas = (text.match(/[^]{1,40}\s?/gu) ?? []).map(
    (delta) => ({ _tag: "TextDelta", ...at, delta }) as const
  )
  return reply(stopReason, [{ _tag: "TextStart", ...at }, ...deltas, { _tag: "TextEnd", ...at }])
}

const reply = (stopReason: StopReason, blocks: ReadonlyArray<ModelEvent>): ReadonlyArray<ModelEvent> => [
  { _tag: "Start", provider: "local", model: "rules", protocol: "rules" },
  ...blocks,
  { _tag: "Finish", stopReason, usage: Usage.zero }
]
