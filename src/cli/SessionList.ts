/** The commands `sessions list`, `show`, `export` and `rm`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as RunOptions from "../RunOptions.ts"
import type { SessionError } from "../Session.ts"
import * as SessionEntry from "../sessions/SessionEntry.ts"
import type { Contents, ListOptions, Service, Summary } from "../sessions/SessionStore.ts"
import * as ExitCode from "./ExitCode.ts"
import type { SessionsLine } from "./CommandLine.ts"
import * as Inert from "./Inert.ts"
import * as JsonLine from "./JsonLine.ts"
import { Screen } from "./Screen.ts"
import * as SessionPlace from "./SessionPlace.ts"
import * as Settings from "./Settings.ts"
import type { Environment } from "./Vendors.ts"

/** Runs the command and returns its exit code. */
export const run = Effect.fnUntraced(function* (line: SessionsLine, env: Environment) {
  const { out } = yield* Screen
  const { listed, store } = yield* SessionPlace.at(yield* Settings.place(line, env))
  const { json } = line
  if (line.action === "list") {
    const items = yield* allOf(store, listed)
    yield* out(json ? JsonLine.of({ items }) : items.map(lineOf).join(""))
  } else if (line.action === "rm") {
    yield* SessionPlace.known(store.delete(line.id))
    if (json) yield* out(JsonLine.of({ removed: line.id }))
  } else if (line.action === "export") {
    yield* write(store, line.id, json ? "jsonl" : line.format)
  } else {
    const contents = yield* SessionPlace.known(store.read(line.id))
    yield* report(line.id, contents)
    yield* json ? Effect.flatMap(shown(contents), out) : write(store, line.id, "md")
  }
  return ExitCode.answered
}, Effect.scoped)

const report = Effect.fnUntraced(function* (sessionId: string, { damage }: Contents) {
  const { err, paint } = yield* Screen
  const remark = SessionPlace.remarkOn(sessionId, damage)
  if (remark !== undefined) yield* err(`${paint.red("effect-agent:")} ${Inert.line(remark)}\n`)
})

/** Writes a session to stdout. */
const write = Effect.fnUntraced(function* (store: Service, sessionId: string, format: "jsonl" | "md") {
  const { out } = yield* Screen
  const safe = format === "md" ? Inert.text : (text: string) => text
  yield* SessionPlace.known(Stream.runForEach(store.export(sessionId, format), (text) => out(safe(text))))
})

/** All pages of a list. */
const allOf = (store: Service, page: ListOptions): Effect.Effect<ReadonlyArray<Summary>, SessionError> =>
  Effect.flatMap(store.list(page), ({ items, nextCursor }) =>
    nextCursor === undefined
      ? Effect.succeed(items)
      : Effect.map(allOf(store, { ...page, cursor: nextCursor }), (more) => [...items, ...more])
  )

const lineOf = ({ modified, sessionId, title }: Summary): string =>
  `${sessionId}  ${new Date(modified).toISOString().slice(0, 16).replace("T", " ")}  ${Inert.line(title, 80)}\n`

const encodeOptions = Schema.encodeEffect(Schema.toCodecJson(RunOptions.Patch))

const shown = Effect.fnUntraced(function* ({ entries, session, view }: Contents) {
  const options = yield* Effect.orDie(encodeOptions(view.options))
  return JsonLine.of({ session, entries: entries.map(SessionEntry.toJson), view: { ...view, options } })
})
