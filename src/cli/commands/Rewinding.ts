/** The command `sessions rewind`: goes back before a prompt, with the files or without. */
import * as Effect from "effect/Effect"
import type * as Message from "../../Message.ts"
import { textOf } from "../../Message.ts"
import { SessionError, StorageFailed } from "../../Session.ts"
import type { Contents, Service } from "../../sessions/SessionStore.ts"
import type * as KeptFiles from "../agent/KeptFiles.ts"
import type { RewindLine } from "../CommandLine.ts"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import type { KeepFailed } from "../files/KeptStore.ts"
import type { Item } from "../files/Ledger.ts"
import type { Plan } from "../files/Restoring.ts"
import * as Inert from "../terminal/Inert.ts"
import { complain, Screen } from "../terminal/Screen.ts"

/** Goes back, and returns the exit code. */
export const rewind = Effect.fnUntraced(function* (
  store: Service,
  kept: KeptFiles.Place,
  sessionId: string,
  { dryRun, files, force, json, to }: RewindLine & { readonly json: boolean }
) {
  const { out } = yield* Screen
  const session = yield* store.open(sessionId)
  const contents = yield* store.read(sessionId)
  const prompts = promptsOf(contents)
  const prompt = prompts.at(-to)
  if (prompt === undefined)
    return yield* new UsageError({
      detail: `The session has ${prompts.length} prompts: --to ${to} names none of them.`
    })
  const keeper =
    files && (yield* kept.has(sessionId))
      ? yield* Effect.mapError(kept.open(sessionId), failed(sessionId))
      : undefined
  const items = keeper?.current.back ?? []
  const count = items.length - items.findLastIndex((item) => !isSince(contents, item, prompt.start)) - 1
  const plan =
    keeper === undefined ? undefined : yield* Effect.mapError(keeper.plan("back", count), failed(sessionId))
  const { cwd } = contents.session
  const shown = (path: string) =>
    path.startsWith(`${cwd}/`) && cwd !== "" ? path.slice(cwd.length + 1) : path
  const conflicts = plan?.conflicts ?? []
  if (conflicts.length > 0 && !force) {
    yield* Effect.forEach(conflicts, (path) => complain(`${shown(path)} changed since.`))
    if (!dryRun) return ExitCode.failed
  }
  if (!dryRun) {
    if (keeper !== undefined && plan !== undefined)
      yield* Effect.mapError(keeper.restore(plan), failed(sessionId))
    yield* session.rewindBefore(prompt.messageId)
  }
  const lines = plan === undefined ? [] : linesOf(plan, shown)
  const notKept = [...new Set([...(plan?.notKept ?? []), ...(keeper?.current.notKept ?? [])])].map(shown)
  const report = {
    prompt: prompt.text,
    restored: paths(plan, false).map(shown),
    removed: paths(plan, true).map(shown),
    conflicts: conflicts.map(shown),
    notKept,
    dryRun
  }
  yield* out(
    json
      ? Inert.json(report)
      : [
          ...lines,
          ...notKept.map((path) => `not kept: ${path}`),
          `${dryRun ? "Would go" : "Went"} back before: ${prompt.text.slice(0, 80)}`
        ]
          .map((line) => `${Inert.line(line)}\n`)
          .join("")
  )
  return conflicts.length > 0 && !force ? ExitCode.failed : ExitCode.answered
}, Effect.scoped)

const failed = (sessionId: string) => (error: KeepFailed) =>
  new SessionError({
    sessionId,
    reason: new StorageFailed({ operation: "rewind", detail: error.message })
  })

const paths = (plan: Plan | undefined, isRemoved: boolean) =>
  (plan?.writes ?? []).filter(({ to }) => (to.kind === "absent") === isRemoved).map(({ path }) => path)

/** The lines on the files that go back. */
const linesOf = (plan: Plan, shown: (path: string) => string): ReadonlyArray<string> => {
  const [restored, removed] = [paths(plan, false), paths(plan, true)]
  if (restored.length + removed.length === 0) return ["Nothing to undo."]
  return [
    `Restored ${restored.length} files, removed ${removed.length}.`,
    ...restored.map((path) => `restored ${shown(path)}`),
    ...removed.map((path) => `removed ${shown(path)}`)
  ]
}

// ───────────────────────── Prompts

interface Prompt {
  readonly messageId: Message.MessageId
  readonly text: string
  /** The place of the start of its run among the entries. */
  readonly start: number
}

/** The prompts of the current branch: the first message of a user after the start of each run that continues no other one. */
const promptsOf = ({ entries, view }: Contents): ReadonlyArray<Prompt> => {
  const current = new Set(view.messages.map(({ id }) => id))
  const prompts: Array<Prompt> = []
  let start: number | undefined
  for (const [index, entry] of entries.entries()) {
    if (entry.type === "run" && entry.phase === "start")
      start = entry.resumes === undefined ? index : undefined
    if (start === undefined || entry.type !== "message" || entry.message.role !== "user") continue
    const { message } = entry
    if (current.has(message.id)) prompts.push({ messageId: message.id, text: textOf(message), start })
    start = undefined
  }
  return prompts
}

/** How many of the newest items are of runs since a prompt. */
export const countSince = (contents: Contents, messageId: string, items: ReadonlyArray<Item>): number => {
  const prompt = promptsOf(contents).find((one) => one.messageId === messageId)
  if (prompt === undefined) return 0
  return items.length - items.findLastIndex((item) => !isSince(contents, item, prompt.start)) - 1
}

/** Whether the run of an item began at a place of the entries, or later. */
const isSince = ({ entries }: Contents, { runId }: Item, start: number): boolean => {
  const first = (id: string): number => {
    const at = entries.findIndex(
      (entry) => entry.type === "run" && entry.phase === "start" && entry.runId === id
    )
    const entry = entries[at]
    return entry?.type === "run" && entry.resumes !== undefined ? first(entry.resumes) : at
  }
  return first(runId) >= start
}
