/** The commands `/undo`, `/redo` and `/diff`, and the files of `/rewind`. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as TextDiff from "effect/TextDiff"
import type { FileKeeper } from "../files/FileKeeper.ts"
import type { Direction, Plan } from "../files/Restoring.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Panels from "./Panel.ts"
import type { Session } from "./Session.ts"
import { diffLines } from "./Transcript.ts"

/** The keeper of the session, `undefined` where nothing is kept. */
const keeperOf = (session: Session) =>
  session.place.files === undefined || !session.isMade ? Effect.undefined : session.place.files(session.id)

const nothing = (direction: Direction): string =>
  direction === "back" ? "Nothing to undo." : "Nothing to redo."

/** Takes the changes of the last prompts back, or makes them again, once the person has answered for each conflict. */
const move = Effect.fnUntraced(function* (session: Session, direction: Direction, count: number) {
  const keeper = yield* keeperOf(session)
  if (keeper === undefined || count === 0) return session.say(nothing(direction))
  const plan = yield* keeper.plan(direction, count)
  if (plan.items.length === 0) return session.say(nothing(direction))
  const [first, ...others] = plan.conflicts
  if (first === undefined) return yield* carryOut(session, keeper, plan)
  const kept = new Set<string>()
  const ask = (path: string, rest: ReadonlyArray<string>): void => {
    const then = () => {
      const [next, ...after] = rest
      session.hide()
      if (next !== undefined) return ask(next, after)
      const decided = Effect.flatMap(keeper.plan(direction, count, kept), (plan) =>
        carryOut(session, keeper, plan)
      )
      session.do(decided)
    }
    session.show(
      Panels.keys({
        title: [`${shownIn(session, path)} changed since:`],
        keys: [
          [
            "k",
            "keep it",
            () => {
              kept.add(path)
              then()
            }
          ],
          ["o", "restore anyway", then],
          ["d", "diff", () => void session.do(showConflict(session, keeper, plan, path))]
        ],
        cancel: () => {
          session.hide()
          session.say("Nothing was restored.")
        }
      })
    )
  }
  ask(first, others)
})

const carryOut = Effect.fnUntraced(function* (session: Session, keeper: FileKeeper, plan: Plan) {
  yield* keeper.restore(plan)
  const paths = (isRemoved: boolean) =>
    plan.writes
      .filter(({ to }) => (to.kind === "absent") === isRemoved)
      .map(({ path }) => shownIn(session, path))
  const [restored, removed] = [paths(false), paths(true)]
  const lines = [...restored.map((path) => `restored ${path}`), ...removed.map((path) => `removed ${path}`)]
  session.say(
    `Restored ${restored.length} files, removed ${removed.length}.`,
    ...lines,
    ...plan.notKept.map((path) => `not kept: ${shownIn(session, path)}`)
  )
})

/** A run that was suspended, and the one that continues it, are one prompt. */
const newest = Effect.fnUntraced(function* (session: Session, direction: Direction) {
  const { newestChanges } = session.place
  const isKept = newestChanges !== undefined && session.isMade
  yield* move(session, direction, isKept ? yield* newestChanges(session.id, direction) : 0)
})

export const undo = (session: Session) => newest(session, "back")

export const redo = (session: Session) => newest(session, "forth")

/** Takes back what changed since a prompt. */
export const backTo = Effect.fnUntraced(function* (session: Session, messageId: string) {
  const { changesSince } = session.place
  yield* move(session, "back", changesSince === undefined ? 0 : yield* changesSince(session.id, messageId))
})

/** Shows each file that the session changed, against its first version. */
export const diff = Effect.fnUntraced(function* (session: Session) {
  const keeper = yield* keeperOf(session)
  if (keeper === undefined) return session.say("No file was changed.")
  const lines: Array<string> = []
  for (const [path, before] of keeper.firstVersions)
    lines.push(...(yield* changesOf(session, path, yield* keeper.text(before), yield* textAt(path))))
  session.face.print(lines.length === 0 ? ["No file was changed."] : lines)
})

const showConflict = Effect.fnUntraced(function* (
  session: Session,
  keeper: FileKeeper,
  { writes }: Plan,
  path: string
) {
  const write = writes.find((one) => one.path === path)
  if (write === undefined) return
  session.face.print(yield* changesOf(session, path, yield* textAt(path), yield* keeper.text(write.to)))
})

const textAt = (path: string) =>
  Effect.orElseSucceed(
    FileSystem.FileSystem.use((files) => files.readFileString(path)),
    () => ""
  )

/** The most lines of a comparison, old and new together. */
const maxLines = 40_000

const changesOf = (session: Session, path: string, before: string, after: string) =>
  Effect.sync((): ReadonlyArray<string> => {
    if (before === after) return []
    const name = session.theme.style("bold", shownIn(session, path))
    if (before.split("\n").length + after.split("\n").length > maxLines)
      return [name, "  too large to compare"]
    const script = TextDiff.lines(before, after, { maxEdits: 1_000 })
    return [name, ...diffLines(TextDiff.unified(script), session.theme)]
  })

const shownIn = ({ place: { root } }: Session, path: string): string =>
  Inert.line(path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path)
