/** A stored session as a person reads it: its prompts, its answers, and files of it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Payload from "../../api/Payload.ts"
import * as Message from "../../Message.ts"
import type { Service } from "../../runs/Runs.ts"
import { shownPrompt } from "./Transcript.ts"
import { type Usage, add, zero } from "../../Usage.ts"
import * as PromptChanges from "../files/PromptChanges.ts"
import * as Output from "../terminal/Output.ts"

const decode = Schema.decodeUnknownOption(Schema.toCodecJson(Schema.Array(Message.Message)))

/** The messages of the current branch. */
export const messages = ({ sessions }: Service, sessionId: string) =>
  Effect.map(sessions.get(sessionId), ({ view }) =>
    Option.getOrElse(decode(view["messages"]), (): ReadonlyArray<Message.Message> => [])
  )

const decodeModel = Schema.decodeUnknownOption(
  Schema.Struct({ options: Schema.Struct({ model: Schema.NonEmptyString }) })
)

/** The model that a session names. */
export const modelOf = ({ view }: Payload.SessionContents): string | undefined =>
  Option.getOrUndefined(decodeModel(view))?.options.model

/** A prompt of the person. */
interface Prompt {
  readonly id: string
  readonly text: string
}

/** The prompts, the newest first. */
export const prompts = (all: ReadonlyArray<Message.Message>): ReadonlyArray<Prompt> =>
  all
    .flatMap((message) => (isPrompt(message) ? [{ id: message.id, text: textOf(message) }] : []))
    .toReversed()

/** The answers, the newest first. */
export const answers = (all: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  all
    .flatMap((message) => (message.role === "assistant" ? [Message.textOf(message)] : []))
    .filter((text) => text.trim() !== "")
    .toReversed()

/** The tokens of all answers. */
export const usageOf = (all: ReadonlyArray<Message.Message>): Usage =>
  all.reduce((sum, message) => (message.role === "assistant" ? add(sum, message.usage ?? zero) : sum), zero)

/** The tokens of the last request and its answer. */
export const contextOf = (all: ReadonlyArray<Message.Message>): number => {
  const last = all.findLast((message) => message.role === "assistant")
  const usage = last?.role === "assistant" ? last.usage : undefined
  return usage === undefined ? 0 : usage.input + usage.output
}

/** The code blocks of an answer, without their fences. */
export const codeIn = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/^ {0,3}(`{3,}|~{3,})[^\n]*\n([^]*?)\n? {0,3}\1\s*$/gm), ([, , code = ""]) => code)

/** The text of a prompt, without what the program appended for the model. */
export const textOf = (message: Message.User): string => shownPrompt(Message.textOf(message))

/** Whether a person wrote a message. A hook of the program names files that went back. */
export const isPrompt = (message: Message.Message): message is Message.User =>
  message.role === "user" && !Message.textOf(message).startsWith(PromptChanges.report)

/** The conversation as Markdown. */
export const markdown = (title: string, all: ReadonlyArray<Message.Message>): string => {
  const parts = all.flatMap((message) => {
    if (message.role === "user") return [`## You\n\n${Message.textOf(message)}`]
    if (message.role === "assistant") {
      const text = Message.textOf(message)
      const calls = Message.toolCalls(message).map(
        ({ name, params }) => `- \`${Output.titleOf(name, params).replaceAll("`", "'")}\``
      )
      const answered = text.trim() === "" ? [] : [`## Agent\n\n${text}`]
      return [...answered, ...(calls.length === 0 ? [] : [calls.join("\n")])]
    }
    if (message.role !== "toolResult") return []
    const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")
    return [fenced(text)]
  })
  return `# ${title}\n\n${parts.join("\n\n")}\n`
}

/** A text in a fence that is longer than each one in it. */
const fenced = (text: string): string => {
  const longest = Array.from(text.matchAll(/`{3,}/g), ([fence]) => fence.length).reduce(
    (a, b) => Math.max(a, b),
    2
  )
  const fence = "`".repeat(longest + 1)
  return `${fence}\n${text.trimEnd()}\n${fence}`
}

/** The conversation as a page without script. */
export const html = (title: string, all: ReadonlyArray<Message.Message>): string => {
  const safe = (text: string) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
  const body = `<pre>${safe(markdown(title, all))}</pre>`
  const style =
    "pre{white-space:pre-wrap;max-width:80ch;margin:2em auto;font:14px/1.5 ui-monospace,monospace}"
  return `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>${safe(title)}</title><style>${style}</style></head><body>${body}</body></html>\n`
}
