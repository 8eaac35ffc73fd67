/** The command `sessions rewind`: goes back before a prompt, with the files or without. */
import * as Effect from "effect/Effect"
import { SessionError, StorageFailed } from "../../Session.ts"
import type { Service } from "../../sessions/SessionStore.ts"
import type * as KeptFiles from "../agent/KeptFiles.ts"
import type { RewindLine } from "../CommandLine.ts"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import type { KeepFailed } from "../files/KeptStore.ts"
import * as PromptChanges from "../files/PromptChanges.ts"
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
  const prompts = PromptChanges.of(contents)
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
  const count = PromptChanges.since(contents, items, prompt.messageId)
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
