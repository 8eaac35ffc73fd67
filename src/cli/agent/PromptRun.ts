/** A prompt: chooses a model, reads what goes to it, and runs the agent once. Its modules are loaded when the program has one. */
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import type { Stdio } from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Provider } from "../../Provider.ts"
import type { SessionError } from "../../Session.ts"
import { InvalidContinuation } from "../../internal/continuation.ts"
import type { Line } from "../CommandLine.ts"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import * as Signals from "../Signals.ts"
import * as Project from "../settings/Project.ts"
import type * as SettingTable from "../settings/SettingTable.ts"
import * as Settings from "../settings/Settings.ts"
import * as ApprovalPrompt from "../terminal/ApprovalPrompt.ts"
import * as Inert from "../terminal/Inert.ts"
import * as JsonOutput from "../terminal/JsonOutput.ts"
import { Keyboard } from "../terminal/Keyboard.ts"
import * as Pasted from "../terminal/Pasted.ts"
import * as Pause from "../terminal/Pause.ts"
import * as Screen from "../terminal/Screen.ts"
import * as StandardInput from "../terminal/StandardInput.ts"
import * as TextOutput from "../terminal/TextOutput.ts"
import * as AgentSetup from "./AgentSetup.ts"
import * as CommandSandbox from "./CommandSandbox.ts"
import * as ListPrices from "./ListPrices.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as ModelNotes from "./ModelNotes.ts"
import * as Outcome from "./Outcome.ts"
import * as SessionChoice from "./SessionChoice.ts"
import * as SessionPlace from "./SessionPlace.ts"
import * as TelemetryExport from "./TelemetryExport.ts"

/** Reads the settings and the prompt. */
export const prepare = Effect.fnUntraced(function* (line: Line) {
  const { prompt: words, ...flags } = line
  const { commands, remarks, settings } = yield* settingsOf(flags)
  const prompt = yield* promptOf(words, settings)
  const output = yield* outputOf(settings)
  const [choice, { options, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, process.env), CommandSandbox.choose(settings)],
    { concurrency: 2 }
  )
  const { err, paint } = yield* Screen.Screen
  const sandbox = remark === undefined ? "" : `. ${remark}`
  const lines = [...remarks, `Model: ${choice.model} (${choice.why})${sandbox}`]
  yield* err(lines.map((line) => `${paint.dim(Inert.line(line))}\n`).join(""))
  const project = yield* Project.load(settings, process.env)
  const plan: Plan = { settings, prompt, choice, output, project, shell: options, commands }
  return plan
})

/** The settings. A session that continues has its folder and its model, unless a flag names others. */
const settingsOf = Effect.fnUntraced(function* (flags: SettingTable.Flags) {
  const first = yield* Settings.read(flags, process.env)
  const session = yield* SessionChoice.find(first.settings)
  const read = session === undefined ? first : yield* Settings.read(flags, process.env, session.file)
  const path = yield* Path.Path
  const here = path.resolve(first.settings.cwd)
  const folder = path.resolve(read.settings.cwd)
  const id = Option.fromUndefinedOr(session?.sessionId)
  const { fork, store } = first.settings
  return {
    // The session stays in its store, whatever its folder says.
    settings: {
      ...read.settings,
      store,
      continue: false,
      ...(Option.isSome(fork) ? { fork: id } : { resume: id })
    },
    commands: Pasted.of(first.place, first.picks),
    remarks: [...read.remarks, ...(folder === here ? [] : [`Folder: ${folder} (the session)`])]
  }
})

/** The first prompt, with its files. */
const promptOf = Effect.fnUntraced(function* (words: string, settings: Settings.Settings) {
  const {
    files,
    text,
    words: others
  } = settings.file.length > 0 || words.includes("@")
    ? yield* (yield* Effect.promise(() => import("./Attachments.ts"))).read(words, settings)
    : { files: [], text: words, words: [] }
  const { err, paint } = yield* Screen.Screen
  const notices = others.map((word) => paint.dim(`@${Inert.line(word)} names no file and stays text.`))
  yield* err(notices.map((notice) => `${notice}\n`).join(""))
  const isOnStdin = settings.inputFormat === "stream-json"
  if (isOnStdin && text.trim() === "" && files.length === 0) return undefined
  const whole = isOnStdin ? text : yield* StandardInput.promptOf(text, Option.isSome(settings.resume))
  if (whole === undefined) return undefined
  return files.length === 0 ? whole : [{ type: "text" as const, text: whole }, ...files]
})

const outputOf = Effect.fnUntraced(function* ({ outputSchema }: Settings.Settings) {
  if (Option.isNone(outputSchema)) return undefined
  const { read } = yield* Effect.promise(() => import("./OutputSchema.ts"))
  return yield* read(outputSchema.value)
})

// ───────────────────────── The run

type Services =
  | ChildProcessSpawner
  | FileSystem.FileSystem
  | Keyboard
  | Path.Path
  | Provider
  | Screen.Screen
  | Signals.Signals
  | Stdio

/** The input of a run, and the commands that continue it. */
interface Plan extends AgentSetup.Plan {
  readonly commands: Pasted.Pasted
}

/** Runs a plan and reports its outcome. Fails only before the first request. */
export const run = Effect.fnUntraced(
  function* (plan: Plan) {
    const played = yield* play(plan)
    yield* childrenGone
    const { leave } = yield* Keyboard
    if (yield* leave) yield* complain("What you typed during the run was dropped.")
    const code = yield* conclude(plan, played)
    if (plan.settings.outputFormat !== "json") return code
    yield* Screen.Screen.use(({ out }) => Effect.flatMap(JsonOutput.resultLine(played, code), out))
    return code
  },
  (effect, { choice }) =>
    Effect.provide(effect, [choice.provider, ListPrices.layer, TelemetryExport.layer(process.env)])
)

/** The exit code, once the outcome is reported and the answer is written. */
const conclude = Effect.fnUntraced(function* (plan: Plan, { ending, faults, outcome, sessionId }: Played) {
  if (ending !== undefined) return Signals.exitCode(ending)
  if (plan.settings.inputFormat === "stream-json" && outcome === Outcome.initial) {
    if (faults === 0) yield* complain("No prompt came on stdin.")
    return ExitCode.usage
  }
  const { settings } = plan
  const policy = yield* AgentSetup.policyOf(plan, Effect.void)
  const advise = (refused: ReadonlyArray<Outcome.Call>) => ApprovalPrompt.advice(policy, refused)
  const { code, lines = [], remark } = Outcome.verdict(outcome, { commands: plan.commands, advise })
  const refused = Outcome.refusedCalls(outcome, advise(outcome.refused))
  const remarks = [
    ...(remark === undefined ? [] : [remark]),
    ...(code === ExitCode.answered && refused !== undefined ? [refused] : []),
    ...Outcome.passedBounds(outcome, settings)
  ]
  yield* Effect.forEach(remarks, complain)
  const last = settings.outputFormat === "text" ? Outcome.summary(outcome, sessionId) : undefined
  const { err, paint } = yield* Screen.Screen
  yield* err(lines.map((line) => `  ${Inert.text(line)}\n`).join(""))
  if (last !== undefined) yield* err(`${paint.dim(last)}\n`)
  // The output of a run without an answer must not replace an answer from an earlier run.
  const saved = code === ExitCode.answered ? yield* save(plan, outcome) : code
  if (faults > 0) return ExitCode.usage
  const isRefused = settings.failOnRefusal && outcome.refused.length > 0
  return saved === ExitCode.answered && isRefused ? ExitCode.refused : saved
})

/** Polls `isSo` until it is true or the time is over. */
const until = (isSo: () => boolean, patience: Duration.Input): Effect.Effect<void> => {
  const look: Effect.Effect<void> = Effect.suspend(() =>
    isSo() ? Effect.void : Effect.andThen(Effect.sleep("10 millis"), look)
  )
  return Effect.asVoid(Effect.timeoutOption(look, patience))
}

interface Played {
  /** The outcome of the last run. */
  readonly outcome: Outcome.Outcome
  /** The number of bad lines of stdin. */
  readonly faults: number
  /** The signal or closed pipe that ended the run, if any. */
  readonly ending: Signals.Ending | undefined
  readonly sessionId: string | undefined
}

const play = Effect.fnUntraced(function* (
  plan: Plan
): Effect.fn.Return<Played, SessionError | UsageError, Services | Scope> {
  const opened = yield* sessionOf(plan.settings)
  if (plan.prompt !== undefined) yield* Effect.forEach(voided(opened), complain)
  let outcome = Outcome.initial
  const { during, show } = yield* shower(plan)
  const isShown = (toolCallId: string) => () => outcome.started.has(toolCallId)
  const input = yield* Latch.make()
  const agent = yield* AgentSetup.make(plan, opened, {
    ...(yield* AgentSetup.policyOf(plan, input.await)),
    during,
    root: (yield* Path.Path).resolve(plan.settings.cwd),
    shown: (toolCallId) => until(isShown(toolCallId), "500 millis")
  })
  const { ending } = yield* Signals.Signals
  let ended: Signals.Ending | undefined
  // Cancels through the agent instead of interrupting, so that the last events are shown.
  const onEnding = Effect.flatMap(ending, (kind) => {
    ended = kind
    return agent.cancel(kind)
  })
  yield* Effect.forkScoped(onEnding)
  const one = (events: Stream.Stream<AgentEvent, unknown>) =>
    Effect.suspend(() => {
      outcome = Outcome.initial
      const shown = Stream.runForEachArray(events, (some) =>
        Effect.map(show(some), () => {
          outcome = some.reduce(Outcome.fold, outcome)
        })
      )
      return Effect.flatMap(Effect.exit(shown), (exit) => accepted(exit, outcome))
    })
  const sessionId = opened?.session.id
  if (plan.settings.inputFormat === "text") {
    yield* one(plan.prompt === undefined ? agent.continueStream : agent.stream(plan.prompt))
    return { outcome, faults: 0, ending: ended, sessionId }
  }
  const { follow } = yield* Effect.promise(() => import("../terminal/InputLines.ts"))
  const faults = yield* follow(agent, one, beginningOf(plan, opened), input.open)
  return { outcome, faults, ending: ended, sessionId }
}, Effect.scoped)

/** The calls that a person has approved, and that a prompt makes void. */
const voided = (opened: SessionChoice.Opened | undefined): ReadonlyArray<string> =>
  (opened?.session.restored.open?.approvals ?? []).flatMap(({ answer, request: { params, toolName } }) =>
    answer?.decision === "approve"
      ? [`The approved call ${TextOutput.titleOf(toolName, params)} was not run: a new prompt came first.`]
      : []
  )

const beginningOf = ({ prompt, settings }: Plan, opened: SessionChoice.Opened | undefined) => ({
  first: prompt,
  isResumed: Option.isSome(settings.resume),
  isSuspended: opened?.session.restored.open?.isSuspended === true
})

/** Whether a run ended well. The events of a failed one contain its error; another failure is a bug. */
const accepted = Effect.fnUntraced(function* (exit: Exit.Exit<void, unknown>, { status }: Outcome.Outcome) {
  if (Exit.isSuccess(exit)) return status !== "cancelled"
  yield* Effect.logDebug("The run failed", exit.cause)
  const error = Cause.squash(exit.cause)
  if (isContinuation(error)) return yield* new UsageError({ detail: nothingOpen })
  if (status === undefined) return yield* Effect.die(error)
  return false
})

const isContinuation = Schema.is(InvalidContinuation)

const nothingOpen = "There is nothing to continue in this session: give a prompt."

/** The session of the run, `undefined` if it has none. */
const sessionOf = Effect.fnUntraced(function* (settings: Settings.Settings) {
  const { fork, name, resume, store } = settings
  if (settings.noSession) return undefined
  const isWanted = [resume, fork, name].some(Option.isSome) || Option.isSome(store)
  const opening = Effect.tap(SessionChoice.open(settings), ({ session }) => {
    const remark = SessionPlace.remarkOn(session.id, session.damage)
    return remark === undefined ? Effect.void : complain(remark)
  })
  if (isWanted) return yield* opening
  return yield* Effect.catchTag(opening, "SessionError", ({ message }) =>
    Effect.as(complain(`The conversation is not kept. ${message}`), undefined)
  )
})

/** Shows an array of events at a time. */
const shower = Effect.fnUntraced(function* (plan: Plan) {
  const { settings } = plan
  const screen = yield* Screen.Screen
  const isJson = settings.outputFormat === "stream-json"
  const { hide, show } = isJson
    ? { show: JsonOutput.make(screen), hide: Effect.void }
    : TextOutput.make(screen, {
        answering: answeringOf(plan),
        fallbacks: settings.fallbackModel.map(({ name }) => name),
        asks:
          (yield* AgentSetup.policyOf(plan, Effect.void)).asked === "terminal" ? ApprovalPrompt.mayAsk : none
      })
  const note = ModelNotes.make(screen, Option.isSome(settings.maxCost))
  const answers = settings.outputFormat === "text" ? outputsOf : () => ""
  const all = (events: ReadonlyArray<AgentEvent>) =>
    Effect.andThen(Effect.andThen(show(events), note(events)), screen.out(answers(events)))
  const pause = Pause.make(all)
  const during: Pause.Pause["during"] = (question) => pause.during(Effect.andThen(hide, question))
  // Programs that read JSON get it at once.
  return { show: isJson ? all : pause.show, during }
})

const none = () => false

const answeringOf = ({ output, settings }: Plan): TextOutput.Answering => {
  if (settings.outputFormat !== "text" || output !== undefined) return "never"
  return settings.print && process.stdout.isTTY !== true ? "whole" : "streamed"
}

/** The typed outputs, one on each line. */
const outputsOf = (events: ReadonlyArray<AgentEvent>): string =>
  events
    .flatMap((event) =>
      event._tag === "Output" && event.path === undefined ? [`${JSON.stringify(event.value)}\n`] : []
    )
    .join("")

/** Writes the answer to the file of `--output` and returns the exit code. */
const save = Effect.fnUntraced(function* ({ settings }: Plan, outcome: Outcome.Outcome) {
  const answer = Outcome.answerOf(outcome)
  if (Option.isNone(settings.output) || answer === undefined) return ExitCode.answered
  const file = settings.output.value
  const written = yield* Effect.result(
    FileSystem.FileSystem.use((files) => files.writeFileString(file, `${answer}\n`))
  )
  if (Result.isSuccess(written)) return ExitCode.answered
  yield* complain(`The answer could not be written to ${file}: ${written.failure.message}`)
  return ExitCode.failed
})

const complain = Effect.fnUntraced(function* (remark: string) {
  const { err, paint } = yield* Screen.Screen
  yield* err(`${paint.red("effect-agent:")} ${Inert.line(remark)}\n`)
})

// An interrupted command gets half a second between SIGTERM and SIGKILL, which this process must live to send.
const childrenGone = until(() => !process.getActiveResourcesInfo().includes("ProcessWrap"), "700 millis")
