/** The prompts of a session, and the changes of files that each of them led to. */
import * as Message from "../../Message.ts"
import type { Contents } from "../../sessions/SessionStore.ts"
import type { Item } from "./Ledger.ts"

/** The first line of the message that names for the model the files that went back. */
export const report = "The user has brought files to other versions. Read them again before you change them:"

/** A prompt of a person. */
export interface Prompt {
  readonly messageId: Message.MessageId
  readonly text: string
  /** The run that it began. */
  readonly runId: string
}

/** The items that one prompt led to. */
export interface Changed {
  /** `undefined` if the session does not have it. */
  readonly prompt: Prompt | undefined
  readonly items: ReadonlyArray<Item>
}

/** The first message of a user after the start of each run that continues no other one, oldest first, on all branches. */
const all = ({ entries }: Contents): ReadonlyArray<Prompt> => {
  const prompts: Array<Prompt> = []
  let runId: string | undefined
  for (const entry of entries) {
    if (entry.type === "run" && entry.phase === "start")
      runId = entry.resumes === undefined ? entry.runId : undefined
    if (runId === undefined || entry.type !== "message" || entry.message.role !== "user") continue
    const { message } = entry
    prompts.push({ messageId: message.id, text: Message.textOf(message), runId })
    runId = undefined
  }
  return prompts
}

/** The prompts of the current branch, oldest first. */
export const of = (contents: Contents): ReadonlyArray<Prompt> => {
  const current = new Set(contents.view.messages.map(({ id }) => id))
  return all(contents).filter(({ messageId }) => current.has(messageId))
}

/** Makes the function that finds the run that a person's prompt began, for a run that continued it. */
const origins = ({ entries }: Contents): ((runId: string) => string) => {
  const resumed = new Map(
    entries.flatMap((entry) =>
      entry.type === "run" && entry.phase === "start" && entry.resumes !== undefined
        ? [[entry.runId, entry.resumes] as const]
        : []
    )
  )
  const origin = (runId: string): string => {
    const before = resumed.get(runId)
    return before === undefined ? runId : origin(before)
  }
  return origin
}

/** Items by prompt, in their order. The last one is what an undo takes back, and of items that were taken back what a redo makes again. */
export const byPrompt = (contents: Contents, items: ReadonlyArray<Item>): ReadonlyArray<Changed> => {
  const origin = origins(contents)
  const prompts = new Map(all(contents).map((prompt) => [prompt.runId, prompt]))
  const groups: Array<{ readonly runId: string; readonly items: Array<Item> }> = []
  for (const item of items) {
    const runId = origin(item.runId)
    const last = groups.at(-1)
    if (last?.runId === runId) last.items.push(item)
    else groups.push({ runId, items: [item] })
  }
  return groups.map(({ items, runId }) => ({ prompt: prompts.get(runId), items }))
}

/** The number of the newest items that the prompt of a message and those after it led to. */
export const since = (contents: Contents, items: ReadonlyArray<Item>, messageId: string): number => {
  const prompt = of(contents).find((one) => one.messageId === messageId)
  if (prompt === undefined) return 0
  const origin = origins(contents)
  const starts = contents.entries.flatMap((entry) =>
    entry.type === "run" && entry.phase === "start" ? [entry.runId] : []
  )
  const from = starts.indexOf(prompt.runId)
  return items.length - 1 - items.findLastIndex((item) => starts.indexOf(origin(item.runId)) < from)
}
