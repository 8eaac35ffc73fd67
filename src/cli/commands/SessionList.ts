/** The commands `sessions list`, `show`, `export` and `rm`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as RunOptions from "../../RunOptions.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import type { Contents, Service, Summary } from "../../sessions/SessionStore.ts"
import * as ExitCode from "../ExitCode.ts"
import type { SessionsLine } from "../CommandLine.ts"
import * as Inert from "../terminal/Inert.ts"
import { complain, Screen } from "../terminal/Screen.ts"
import * as Sessions from "../agent/Sessions.ts"
import * as Settings from "../settings/Settings.ts"
import type { Environment } from "../agent/Vendors.ts"

/** Runs the command and returns its exit code. */
export const run = Effect.fnUntraced(function* (line: SessionsLine, env: Environment) {
  const { err, out, paint } = yield* Screen
  const { listed, store } = yield* Sessions.at(yield* Settings.place(line, env))
  const { json } = line
  if (line.action === "list") {
    const items = yield* Sessions.all(store, listed)
    if (items.length === 0) yield* err(paint.dim("There are no sessions of this folder.\n"))
    yield* out(json ? Inert.json({ items }) : linesOf(items))
  } else if (line.action === "rm") {
    const removed = yield* Sessions.use(store, line.id, (id) => Effect.as(store.delete(id), id))
    if (json) yield* out(Inert.json({ removed }))
  } else if (line.action === "export") {
    yield* write(store, line.id, json ? "jsonl" : line.format)
  } else {
    const contents = yield* Sessions.use(store, line.id, store.read)
    const { sessionId } = contents.session
    yield* report(sessionId, contents)
    yield* json ? Effect.flatMap(shown(contents), out) : write(store, sessionId, "md")
  }
  return ExitCode.answered
}, Effect.scoped)

const report = (sessionId: string, { damage }: Contents) => {
  const remark = Sessions.remarkOn(sessionId, damage)
  return remark === undefined ? Effect.void : complain(remark)
}

/** Writes a session to stdout. */
const write = Effect.fnUntraced(function* (store: Service, sessionId: string, format: "jsonl" | "md") {
  const { out } = yield* Screen
  const safe = format === "md" ? Inert.text : Inert.jsonText
  yield* Sessions.use(store, sessionId, (id) =>
    Stream.runForEach(store.export(id, format), (text) => out(safe(text)))
  )
})

/** The sessions with the beginnings of their ids, which name them elsewhere too. */
const linesOf = (items: ReadonlyArray<Summary>): string => {
  const ids = Sessions.shortened(items.map(({ sessionId }) => sessionId))
  return items
    .map((item) => {
      const id = ids.get(item.sessionId) ?? item.sessionId
      return `${Inert.line(id)}  ${Sessions.timeOf(item)}  ${Inert.line(item.title, 80)}\n`
    })
    .join("")
}

const encodeOptions = Schema.encodeEffect(Schema.toCodecJson(RunOptions.Patch))

const shown = Effect.fnUntraced(function* ({ entries, session, view }: Contents) {
  const options = yield* Effect.orDie(encodeOptions(view.options))
  return Inert.json({ session, entries: entries.map(SessionEntry.toJson), view: { ...view, options } })
})
