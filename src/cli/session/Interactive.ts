/** The interactive session: opens its place and its screen, and leaves them. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { homedir } from "node:os"
import * as Payload from "../../api/Payload.ts"
import * as ExitCode from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Screen from "../terminal/Screen.ts"
import * as FullScreen from "./FullScreen.ts"
import * as LineMode from "./LineMode.ts"
import * as Places from "./Place.ts"
import * as PromptHistory from "./PromptHistory.ts"
import * as Session from "./Session.ts"
import * as Switching from "./Switching.ts"
import * as Theme from "./Theme.ts"

export interface Options {
  readonly settings: Settings
  /** The first prompt, `""` for none. */
  readonly prompt: string
  /** Lines about the settings. */
  readonly remarks: ReadonlyArray<string>
  /** The session that continues: the one that the person picks, or the one that the settings name. */
  readonly from:
    | "list"
    | {
        readonly continue: boolean
        readonly resume: Option.Option<string>
        readonly fork: Option.Option<string>
      }
  readonly server: { readonly url: string; readonly tokenFile: Option.Option<string> } | undefined
  readonly version: string
}

/** Why the session is in line mode, `undefined` if it has the whole screen. */
const plainReason = ({ plain }: Settings): string | undefined => {
  const { env, stdin, stdout } = process
  if (plain) return (env["EFFECT_AGENT_PLAIN"] ?? "") === "" ? "--plain" : "EFFECT_AGENT_PLAIN"
  const term = env["TERM"] ?? ""
  if (term === "") return "TERM is not set"
  if (term === "dumb") return "TERM is dumb"
  return stdin.isTTY && stdout.isTTY ? undefined : "no terminal"
}

/** The time that a run gets to end when the person leaves. */
const patience = "2 seconds"

/** Runs the session until the person leaves, and returns the exit code. */
export const run = Effect.fnUntraced(function* (options: Options) {
  const { settings, version } = options
  const { env } = process
  const reason = plainReason(settings)
  const isStyled =
    reason === undefined &&
    settings.theme === "auto" &&
    Screen.wantsColours({ isTerminal: true, flag: !Option.contains(settings.noColor, true), env })
  const theme = Theme.make({
    isStyled,
    isUtf8: reason === undefined && Theme.isUtf8(env),
    isLabelled: reason !== undefined
  })
  const history = yield* PromptHistory.open(settings.cwd)
  const room = reason === undefined ? yield* FullScreen.open(history.prompts) : yield* LineMode.open(reason)
  const remarks: Array<string> = [...options.remarks]
  const target = {
    show: (line: string): void => {
      remarks.push(line)
    }
  }
  const services = Layer.succeed(Screen.Screen, quiet(target))
  const place = yield* Effect.provide(placeOf(options), services)
  const session = yield* Session.make({
    place,
    settings,
    theme,
    face: room,
    history,
    version,
    sessionId: crypto.randomUUID(),
    isMade: false
  }).pipe(Effect.provide(services))
  session.name = Option.getOrUndefined(settings.name)
  session.effort = Option.getOrUndefined(settings.effort)
  room.show(session)
  yield* greet(session, remarks)
  target.show = (line) => session.note(line)
  yield* begin(session, options)
  if (options.prompt.trim() !== "") session.do(session.send(options.prompt))
  if (place.url !== undefined) yield* Effect.forkScoped(session.watched)
  const { ending, patience: wait } = yield* ExitCode.Signals
  yield* wait(3_000)
  const left = yield* Effect.raceFirst(
    Effect.map(Effect.andThen(room.run(), Deferred.await(room.left)), (how) => ({ how, ending: undefined })),
    Effect.map(ending, (ending) => ({ how: "unfinished" as const, ending }))
  )
  const wasWorking = session.run !== undefined
  yield* stopped(session)
  room.close()
  if (session.isUsed) yield* farewell(session)
  if (left.ending !== undefined) return ExitCode.exitCode(left.ending)
  return left.how === "unfinished" && wasWorking ? 130 : ExitCode.answered
}, Effect.scoped)

const placeOf = Effect.fnUntraced(function* ({ server, settings }: Options) {
  if (server === undefined) return yield* Places.embedded(settings, process.env)
  const { make } = yield* Effect.promise(() => import("./RemotePlace.ts"))
  return yield* make(settings, process.env, server)
})

/** A screen whose lines the session shows: nothing else may write to the terminal. */
const quiet = (target: { readonly show: (line: string) => void }): Screen.Screen["Service"] => {
  const write = (text: string) =>
    Effect.sync(() => {
      for (const line of text.split("\n")) if (line.trim() !== "") target.show(line)
    })
  return Screen.Screen.of({
    out: write,
    err: write,
    paint: Screen.paintOf(false),
    isInteractive: false,
    rows: () => process.stdout.rows || 24,
    width: () => 0
  })
}

const greet = Effect.fnUntraced(function* (session: Session.Session, remarks: ReadonlyArray<string>) {
  const { place, settings, version } = session
  const path = yield* Path.Path
  const folder = path.resolve(settings.cwd)
  const home = homedir()
  const short =
    folder === home || folder.startsWith(`${home}${path.sep}`) ? `~${folder.slice(home.length)}` : folder
  session.face.print([
    `effect-agent ${version} · ${Inert.line(session.model)} · ${Inert.line(short)}`,
    "/help for commands · Esc stops · Ctrl-D leaves"
  ])
  for (const line of remarks) session.note(line)
  if (place.model === "local/rules")
    session.say(
      'No model yet: local/rules runs simple commands, such as "read FILE" or "list FOLDER".',
      "To get a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, start ollama serve, or type /login."
    )
})

/** Opens the session that the options name. */
const begin = Effect.fnUntraced(function* (session: Session.Session, { from }: Options) {
  if (from === "list") return yield* Switching.sessions(session)
  const named = Option.getOrUndefined(Option.orElse(from.fork, () => from.resume))
  const id = named === undefined ? undefined : yield* Switching.found(session, named)
  if (id !== undefined) yield* Switching.open(session, id)
  else if (from.continue) {
    const { items } = yield* session.place.runs.sessions.list({ limit: 1 })
    const [newest] = items
    if (newest === undefined)
      return yield* new ExitCode.UsageError({ detail: "There is no session of this folder to continue." })
    yield* Switching.open(session, newest.sessionId)
  }
  if (Option.isSome(from.fork)) yield* Switching.fork(session)
})

/** Cancels the run that works, and waits for its end. */
const stopped = Effect.fnUntraced(function* ({ place, run }: Session.Session) {
  if (run === undefined || run.runId === "") return
  yield* Effect.ignore(place.runs.cancel(run.runId, "the user left"))
  const over = Effect.gen(function* () {
    while (true) {
      if (!Payload.isGoing(yield* place.runs.get(run.runId))) return
      yield* Effect.sleep("20 millis")
    }
  })
  yield* Effect.ignore(Effect.timeoutOption(over, patience))
})

const farewell = ({ id8, place: { url } }: Session.Session) =>
  Effect.sync(() => {
    const at = url === undefined ? "" : ` --url ${Inert.line(url)}`
    process.stdout.write(`Session ${id8} · effect-agent -r ${id8}${at} continues it\n`)
  })
