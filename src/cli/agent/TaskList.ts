/** The task list of a session: the tool `tasks`, by which the model writes it, and where the list is read from. */
import * as Option from "effect/Option"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as ContextManager from "../../ContextManager.ts"
import type { Message, MessageId } from "../../Message.ts"
import type { SessionError } from "../../Session.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import type { OpenSession } from "../../sessions/SessionStore.ts"
import { Tree } from "../../sessions/Tree.ts"
import * as Tool from "../../Tool.ts"

/** The tool, and the kind of the custom entries of a session that have a list. */
export const name = "tasks"

export const Task = Schema.Struct({
  text: Schema.String.annotate({ description: "The task in a few words" }),
  status: Schema.Literals(["pending", "active", "done", "cancelled"])
})
export interface Task extends Schema.Schema.Type<typeof Task> {}

export type TaskList = ReadonlyArray<Task>

/** The list of a session in which the model has written none. */
export const empty: TaskList = []

const Written = Schema.Struct({
  tasks: Schema.Array(Task).annotate({ description: "All tasks, which replace those of the call before" })
})

const decode = Schema.decodeUnknownOption(Written)

/** The number of the tasks that are done, and of all, in words. */
export const progress = (list: TaskList): string =>
  `${list.filter(({ status }) => status === "done").length} of ${list.length} done`

/** The tool. Its results have the list as details, from which it is read. */
export const tool = () =>
  Tool.make({
    name,
    description: [
      "Writes the list of your tasks, which the user sees. Use it for work of three steps or more.",
      "Give the whole list each time: call it when a task begins and when it ends, and have one active task at a time."
    ].join(" "),
    params: Written,
    effect: "pure",
    execute: ({ tasks }) => Effect.succeed(Tool.output(progress(tasks), { details: { tasks } }))
  })

// ───────────────────────── Where it is read from
//
// The results of the tool stand in the transcript of the session, of which a compaction leaves nothing out: only requests have its summary, to
// which the list is added. A fork copies the results, and the custom entry by which a person clears the list.

interface Returned {
  readonly toolName: string
  readonly outcome: string
  readonly details?: unknown
}

const after = (list: TaskList, { details, outcome, toolName }: Returned): TaskList =>
  toolName === name && outcome === "success" ? listIn(list, details) : list

const listIn = (list: TaskList, data: unknown): TaskList =>
  Option.match(decode(data), { onNone: () => list, onSome: ({ tasks }) => tasks })

/** The list after one more event, the same one if the event does not change it. Calls of sub-agents do not count. */
export const step = (list: TaskList, event: AgentEvent): TaskList =>
  event._tag === "ToolExecutionEnd" && event.path === undefined
    ? after(list, { ...event, details: event.result.details })
    : list

const inEntry = (list: TaskList, entry: SessionEntry.SessionEntry): TaskList => {
  if (entry.type === "custom" && entry.kind === name) return listIn(list, entry.data)
  return entry.type === "message" ? inMessage(list, entry.message) : list
}

const inMessage = (list: TaskList, message: Message): TaskList =>
  message.role === "toolResult" ? after(list, message) : list

/** The list of the current branch of a session, from the entries of all branches. */
export const ofEntries = (entries: ReadonlyArray<SessionEntry.SessionEntry>): TaskList => {
  const tree = new Tree()
  for (const entry of entries) tree.add(entry)
  return tree.branch().reduce(inEntry, empty)
}

/** The list of a session as `Runs` shows its entries. */
export const ofShown = (entries: ReadonlyArray<Schema.Json>): TaskList =>
  ofEntries(
    entries.map(SessionEntry.fromJson).flatMap((read) => (Result.isSuccess(read) ? [read.success] : []))
  )

/** A context manager whose summaries end with a list that has open tasks, where they stand in place of the call that wrote it. */
export const summarized = (inner: ContextManager.Service): ContextManager.Service => ({
  ...inner,
  compact: Effect.fnUntraced(function* (conversation, trigger) {
    const plan = yield* inner.compact?.(conversation, trigger) ?? Effect.undefined
    return (
      plan && {
        ...plan,
        summarize: Effect.map(plan.summarize, (made) => ({
          ...made,
          summary: `${made.summary}${inWords(conversation.messages, made.firstKept)}`
        }))
      }
    )
  })
})

const inWords = (messages: ReadonlyArray<Message>, firstKept: MessageId): string => {
  const at = messages.findLastIndex((message) => message.role === "toolResult" && message.toolName === name)
  if (at < 0 || at >= messages.findIndex(({ id }) => id === firstKept)) return ""
  const list = messages.reduce(inMessage, empty)
  if (!list.some(({ status }) => status === "active" || status === "pending")) return ""
  return `\n\nThe list of your tasks:\n${list.map(({ status, text }) => `- ${status}: ${text}`).join("\n")}`
}

/** Clears the list of a session, also while its agent works. */
export const clear = (session: Pick<OpenSession, "append">): Effect.Effect<void, SessionError> =>
  Effect.asVoid(session.append([{ type: "custom", kind: name, data: { tasks: [] } }]))
