/**
 * The session that is played again and again: ten turns, twenty calls of real tools, a message that is put in and one
 * that follows, and a prompt after it. The model is a server that knows by the conversation where it is.
 */
import { Effect, FileSystem, Schema } from "effect"
import { Tool } from "effect-agent"
import { Tools } from "effect-agent/tools"
import type { Words } from "../../conformance/words.ts"
import { type Called, speechOf } from "../speech.ts"

export const prompts = {
  first: "go",
  steered: "look at the rest too",
  followUp: "and sum it up",
  last: "again"
}

/** Tokens of one answer, as `speech.ts` counts them. */
export const tokensOfAnswer = 30

const write = (path: string, content: string) => ({ name: "write", params: { path, content } })
const read = (path: string) => ({ name: "read", params: { path } })
/** Leaves a line with the id of its call. */
const append = { name: "append", params: {} }
const shell = { name: "shell", params: {} }

/** What the model calls in each turn. */
const turns: ReadonlyArray<ReadonlyArray<Omit<Called, "id">>> = [
  [write("a.txt", "a one\n"), append],
  [read("a.txt"), { name: "list", params: {} }],
  [{ name: "edit", params: { path: "a.txt", oldText: "one", newText: "two" } }, append],
  [shell, read("seed.txt")],
  [write("deep/b.txt", "b\n"), { name: "grep", params: { pattern: "two" } }],
  [{ name: "find", params: { pattern: "*.txt" } }, write("c.txt", "c\n")],
  [shell, append],
  [read("deep/b.txt"), write("a.txt", "a three\n"), append],
  [read("missing.txt"), write("d.txt", "d\n"), { name: "look", params: { where: "here" } }]
]

/** All that a file may ever hold, by its path: parts of these are no content. */
export const contents: Readonly<Record<string, ReadonlyArray<string>>> = {
  "a.txt": ["a one\n", "a two\n", "a three\n", "again\n"],
  "deep/b.txt": ["b\n"],
  "c.txt": ["c\n"],
  "d.txt": ["d\n"]
}

/** What a call that went well must have left, by its id. */
export const lefts: ReadonlyMap<string, { readonly path: string; readonly content: string }> = new Map(
  turns.flatMap((calls, turn) =>
    calls.flatMap(({ name, params }, index) =>
      name === "write" && "path" in params && "content" in params
        ? [[idOf(turn, index), { path: String(params.path), content: String(params.content) }] as const]
        : []
    )
  )
)

function idOf(turn: number, index: number): string {
  return `call_${turn}_${index}`
}

/** Where the calls of `append` and `shell` leave their line. */
export const log = "log.txt"

const speech = speechOf("/chat/completions")

/** The answer to a request in the language of Chat Completions. */
export const answer = (body: string): string => {
  const { messages }: Words = JSON.parse(body)
  const isAgain = messages.some(
    ({ content, role }: Words) => role === "user" && isText(content, prompts.last)
  )
  const answered = messages.filter(({ tool_calls }: Words) => tool_calls !== undefined)
  if (isAgain) {
    const isDone = JSON.stringify(answered).includes('"call_again"')
    return speech("There.", isDone ? [] : [{ id: "call_again", ...write("a.txt", "again\n") }])
  }
  const turn = answered.length
  const calls = (turns[turn] ?? []).map(({ name, params }, index) => {
    const id = idOf(turn, index)
    return { id, name, params: name === "shell" ? { command: `echo ${id} >> ${log}` } : params }
  })
  return speech("Let me see.", calls)
}

const isText = (content: Words, text: string): boolean =>
  content === text || (Array.isArray(content) && content.some((part) => part.text === text))

export const tools = (root: string) =>
  [
    ...Tools.make({ root, shell: { timeout: "600 millis" } }),
    Tool.make({
      name: "append",
      description: "Leaves a line in the log.",
      execute: Effect.fnUntraced(function* () {
        const files = yield* FileSystem.FileSystem
        const { toolCallId } = yield* Tool.ToolContext
        yield* files.writeFileString(`${root}/${log}`, `${toolCallId}\n`, { flag: "a" })
        return "appended"
      })
    }),
    Tool.make({
      name: "look",
      description: "Looks somewhere.",
      params: Schema.Struct({ where: Schema.String }),
      execute: ({ where }) => Effect.as(Effect.sleep("1 millis"), `nothing ${where}`)
    })
  ] as const
