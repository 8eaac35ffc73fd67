/**
 * A provider without a model: it reads a prompt by a few fixed rules, really calls the tools, and answers from their
 * results by template. Same prompt, same answer; no network, no key. It is not a language model and says so.
 */
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Record from "effect/Record"
import * as Stream from "effect/Stream"
import type { StopReason, ToolResult } from "../Message.ts"
import { textOf } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import * as Usage from "../Usage.ts"

/** All it understands. Several may be joined by "and", "then", commas or lines. */
export const verbs =
  'read FILE; list FOLDER; find "TEXT" in PATH; count lines in FILE, files in FOLDER or "TEXT" in PATH; ' +
  'replace "OLD" with "NEW" in FILE; run COMMAND'

/** What it says to everything else: one sentence, with the two ways to a model. */
export const refusal =
  "I am local/rules, not a language model, and can only read, list, find text, count, edit by exact text and run: " +
  "for anything else set a key (such as OPENAI_API_KEY) or start a local server (such as Ollama)."

/** The provider `local`. It serves one model, `rules`, whatever the request names. */
export const provider: Provider["Service"] = Provider.of({
  id: "local",
  stream: (request) => Stream.suspend(() => Stream.fromArray(answer(request)))
})

/** The same as a layer. */
export const layer: Layer.Layer<Provider> = Layer.succeed(Provider, provider)

/** One thing to do. `counts`: only how many there are is told of it. */
interface Step {
  readonly tool: string
  readonly params: { readonly [name: string]: string }
  readonly counts?: "lines" | "entries" | "matches"
}

const answer = ({ messages }: ModelRequest): ReadonlyArray<ModelEvent> => {
  const asked = messages.findLastIndex(({ role }) => role === "user")
  const results = messages.slice(asked + 1).filter((message) => message.role === "toolResult")
  // Nobody allowed it: there is nothing to say, and no way around it to look for.
  if (results.some(({ outcome }) => outcome === "rejected" || outcome === "blocked")) return reply("stop", [])

  const prompt = messages[asked]
  const steps = prompt === undefined ? undefined : parse(textOf(prompt))
  if (steps === undefined) return say("refusal", refusal)
  const next = results.some(({ isError }) => isError) ? [] : batchOf(steps.slice(results.length))
  return next.length > 0 ? call(next, messages.length) : say("stop", reportOf(steps, results))
}

/** What changes something runs alone, in its place; what only reads runs together. */
const batchOf = (left: ReadonlyArray<Step>): ReadonlyArray<Step> => {
  const change = left.findIndex(({ tool }) => tool === "edit" || tool === "shell")
  return change === -1 ? left : left.slice(0, Math.max(change, 1))
}

// Quoted text stands aside, as a number between NULs, while the sentence is read: no word in it counts.
const quotes = /`[^`]+`|"[^"]+"|“[^“”]+”|(?<=^|\s)'[^']+'(?=$|[\s,.;:])/g
const text = "(\\0\\d+\\0)"
const one = "(\\0\\d+\\0|[^\\s\\0,;]*[^\\s\\0,;:])"
const many = `(${one}(?:(?:, and |, | and )${one})*)`
/** What may part two clauses, taken as a whole, so that the time stays linear. It does where a verb follows. */
const between = /(?:[\s,;]|\b(?:and|then)\b)+/gi
const parting = /[,;\n]|and|then/i
const verb = /(?:read|show|cat|list|ls|find|search|grep|count|replace|run)\b/iy

/** How a clause is said, the tool for it, and the params its parts are. A part left out is "." */
type Form = readonly [said: string, tool: string, params: ReadonlyArray<string>, counts?: Step["counts"]]
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

/** Of the forms, made when the first prompt is read. */
let patterns: ReadonlyArray<RegExp> | undefined

const parse = (prompt: string): ReadonlyArray<Step> | undefined => {
  const kept: Array<string> = []
  const words = prompt.replace(/\0|\n\n<stdin>\n[^]*$/g, "")
  const masked = words.replace(quotes, (quote) => `\0${kept.push(quote) - 1}\0`)
  // A value that is one quote is what it holds; a quote inside of more keeps its marks, for the shell to read.
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
  patterns ??= forms.map(([said]) => new RegExp(`^${said}$`, "i"))
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
  return [...results.flatMap((result, index) => toldOf(result, steps[index])), ...left].join("\n")
}

const titleOf = ({ params: { command, path, pattern }, tool }: Step): string =>
  [tool, command ?? pattern, path].filter((part) => part !== undefined).join(" ")

const toldOf = (result: ToolResult, step: Step | undefined): ReadonlyArray<string> => {
  if (step === undefined) return []
  const [title, lines, { details }] = [titleOf(step), textOf(result).split("\n"), result]
  const isShort = step.tool === "edit" || (result.isError && step.tool !== "shell")
  if (isShort) return [`${title}: ${lines[0] ?? ""}`]
  const what = step.counts ?? ""
  const counted = Predicate.hasProperty(details, what) ? details[what] : lines.length
  if (step.counts !== undefined) return [`${title}: ${counted} ${what}`]
  // Enough to see what it is; all of it is in the tool's result.
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

/** A few words at a time, as a model would. */
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
