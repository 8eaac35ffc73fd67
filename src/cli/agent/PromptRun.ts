/** A prompt: reads what goes to the model, and runs it in this process or at a server. Its modules are loaded when the program has one. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Line } from "../CommandLine.ts"
import type * as Message from "../../Message.ts"
import * as ExitCode from "../ExitCode.ts"
import { type Picked, toPick } from "../settings/Setting.ts"
import * as AgentSetup from "./AgentSetup.ts"
import type * as SettingTable from "../settings/SettingTable.ts"
import * as Settings from "../settings/Settings.ts"
import * as Requests from "../terminal/Requests.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Output from "../terminal/Output.ts"
import * as StandardInput from "../terminal/StandardInput.ts"
import * as Outcome from "./Outcome.ts"
import * as Screen from "../terminal/Screen.ts"
import * as Network from "./Network.ts"
import * as ModelTable from "./ModelTable.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as PlanTool from "./PlanTool.ts"
import * as Playing from "./Playing.ts"
import * as Sessions from "./Sessions.ts"

/** The prompt, and what is made of its events. */
interface Plan {
  readonly settings: Settings.Settings
  /** The first prompt, `undefined` if stdin has all of them, or the run continues what is open in its session. */
  readonly prompt: Message.Input | undefined
  readonly policy: Requests.Policy
  /** Whether the answer is a value of `--output-schema`. */
  readonly isTyped: boolean
  /** The commands that continue the run. */
  readonly commands: Outcome.Pasted
}

type Read = Effect.Success<ReturnType<typeof Settings.read>>

/** Reads the settings and the prompt. Succeeds with the run, which succeeds with its exit code. */
export const prepare = Effect.fnUntraced(function* ({ prompt: words, ...flags }: Line, version: string) {
  const read = yield* Settings.read(flags, process.env)
  const server = yield* Effect.all(Struct.map(Struct.pick(flags, ["url", "tokenFile"]), toPick(read.sources)))
  const url = Option.getOrUndefined(server.url.found)?.value
  yield* Screen.say(Settings.remarksOn(server))
  if (isSession(words, read.settings)) return yield* session(words, flags, read, server, version)
  if (url === undefined) return yield* embedded(words, flags, read)
  const ServerRuns = yield* Effect.promise(() => import("./ServerRuns.ts"))
  yield* ServerRuns.check(read.picks)
  yield* Screen.say(read.remarks)
  const plan = {
    ...(yield* planOf(words, read.settings)),
    isTyped: false,
    commands: Outcome.pastedOfServer(url)
  }
  const tokenFile = Option.map(server.tokenFile.found, ({ value }) => value)
  const place = ServerRuns.open(read.settings, { url, tokenFile, picks: read.picks })
  return Effect.provide(run(plan, place), Network.http)
})

/** Whether the person gets a session: no prompt, and a terminal on both sides, or because they request it. */
const isSession = (words: string, settings: Settings.Settings): boolean => {
  const { file, inputFormat, interactive, outputFormat, outputSchema, plain, print } = settings
  if (inputFormat !== "text" || outputFormat !== "text" || Option.isSome(outputSchema) || print) return false
  if (interactive) return true
  const { stdin, stdout } = process
  return (
    words.trim() === "" && file.length === 0 && (plain || (stdin.isTTY === true && stdout.isTTY === true))
  )
}

interface Reached {
  readonly url: Picked<string>
  readonly tokenFile: Picked<string>
}

/** The interactive session. Its modules are loaded for it. */
const session = Effect.fnUntraced(function* (
  words: string,
  flags: SettingTable.Flags,
  read: Read,
  { tokenFile, url }: Reached,
  version: string
) {
  const { fork, resume } = read.settings
  const picks = Option.contains(resume, "") && Option.isNone(fork)
  const server = Option.map(url.found, ({ value }) => ({
    url: value,
    tokenFile: Option.map(tokenFile.found, ({ value }) => value)
  }))
  const isHere = Option.isNone(server)
  const found =
    isHere && !picks
      ? yield* settingsOf(flags, read)
      : { settings: { ...read.settings, resume: Option.none<string>() }, remarks: read.remarks }
  if (!isHere)
    yield* Effect.promise(() => import("./ServerRuns.ts")).pipe(
      Effect.flatMap(({ check }) => check(read.picks))
    )
  const { run } = yield* Effect.promise(() => import("../session/Interactive.ts"))
  const whole = run({
    settings: found.settings,
    prompt: words,
    remarks: found.remarks,
    version,
    server: Option.getOrUndefined(server),
    from: picks
      ? "list"
      : {
          continue: read.settings.continue,
          resume: isHere ? found.settings.resume : resume,
          fork: isHere ? found.settings.fork : fork
        }
  })
  return Effect.mapError(whole, Playing.failureOf)
})

const embedded = Effect.fnUntraced(function* (words: string, flags: SettingTable.Flags, first: Read) {
  const { commands, remarks, settings } = yield* settingsOf(flags, first)
  const plan = yield* planOf(words, settings)
  const output = yield* schemaOf(settings)
  const [choice, { options: shell, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, process.env), AgentSetup.chooseSandbox(settings)],
    { concurrency: 2 }
  )
  const sandbox = remark === undefined ? "" : `. ${remark}`
  yield* Screen.say([...remarks, `Model: ${choice.model} (${choice.why})${sandbox}`])
  const project = yield* AgentSetup.loadProject(settings, process.env)
  const hooks = yield* AgentSetup.loadHooks(settings)
  const { policy, prompt } = plan
  const place = agentOf({ settings, prompt, choice, output, project, shell, hooks }, policy)
  return Effect.provide(run({ ...plan, isTyped: output !== undefined, commands }, place), [
    choice.provider,
    ModelTable.prices,
    Network.telemetry(process.env)
  ])
})

/** The prompt, and the policy of its calls. */
const planOf = Effect.fnUntraced(function* (words: string, settings: Settings.Settings) {
  const { isInteractive } = yield* Screen.Screen
  const root = (yield* Path.Path).resolve(settings.cwd)
  const policy = Requests.policyOf(settings, root, Requests.askedOf(settings, isInteractive))
  return { settings, policy, prompt: yield* promptOf(words, settings) }
})

/** The settings. A session that continues has its folder and its model, unless a flag names others. */
const settingsOf = Effect.fnUntraced(function* (flags: SettingTable.Flags, first: Read) {
  const session = yield* Sessions.find(first.settings)
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
    commands: Outcome.pasted(first.place, first.picks),
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
  const isResumed = settings.continue || Option.isSome(settings.resume)
  const whole = isOnStdin ? text : yield* StandardInput.promptOf(text, isResumed)
  if (whole === undefined) return undefined
  return files.length === 0 ? whole : [{ type: "text" as const, text: whole }, ...files]
})

const schemaOf = Effect.fnUntraced(function* ({ outputSchema, plan }: Settings.Settings) {
  if (Option.isNone(outputSchema)) return undefined
  if (plan)
    return yield* new ExitCode.UsageError({
      detail: "--plan and --output-schema exclude one another: the plan is the answer."
    })
  return yield* AgentSetup.outputSchemaOf(outputSchema.value)
})

// ───────────────────────── The run

/** Runs a plan and reports its outcome. Fails only before the first request. */
const run = Effect.fnUntraced(function* <E, R>(plan: Plan, open: Effect.Effect<Playing.Place, E, R>) {
  const played = yield* play(plan, open)
  yield* childrenGone
  const { leave } = yield* StandardInput.Keyboard
  if (yield* leave) yield* Screen.complain("What you typed during the run was dropped.")
  const code = yield* conclude(plan, played)
  if (plan.settings.outputFormat !== "json") return code
  yield* Screen.Screen.use(({ out }) => Effect.flatMap(Output.resultLine(played, code), out))
  return code
})

/** The exit code, once the outcome is reported and the answer is written. */
const conclude = Effect.fnUntraced(function* (plan: Plan, { ending, faults, outcome, sessionId }: Played) {
  if (ending !== undefined) return ExitCode.exitCode(ending)
  if (plan.settings.inputFormat === "stream-json" && outcome === Outcome.initial) {
    if (faults === 0) yield* Screen.complain("No prompt came on stdin.")
    return ExitCode.usage
  }
  const { policy, settings } = plan
  const advise = (refused: ReadonlyArray<Outcome.Call>) => Requests.advice(policy, refused)
  const { code, lines = [], remark } = Outcome.verdict(outcome, { commands: plan.commands, advise })
  const refused = Outcome.refusedCalls(outcome, advise(outcome.refused))
  const remarks = [
    ...(remark === undefined ? [] : [remark]),
    ...(code === ExitCode.answered && refused !== undefined ? [refused] : []),
    ...Outcome.passedBounds(outcome, settings)
  ]
  yield* Effect.forEach(remarks, Screen.complain)
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
  readonly ending: ExitCode.Ending | undefined
  readonly sessionId: string | undefined
}

const play = Effect.fnUntraced(function* <E, R>(plan: Plan, open: Effect.Effect<Playing.Place, E, R>) {
  const { policy, prompt, settings } = plan
  const place = yield* open
  const input = yield* Deferred.make<void>()
  const isImmediate = settings.outputFormat === "stream-json"
  const player = new Playing.Player({
    place,
    policy,
    isImmediate,
    isOver: Deferred.await(input),
    ...(yield* shower(plan))
  })
  const { ending } = yield* ExitCode.Signals
  let ended: ExitCode.Ending | undefined
  // Cancels the run instead of leaving it, so that its last events are shown.
  const onEnding = Effect.flatMap(ending, (kind) => {
    ended = kind
    return player.end(kind)
  })
  yield* Effect.forkScoped(onEnding)
  const played = (faults: number): Played => ({
    outcome: player.outcome,
    faults,
    ending: ended,
    sessionId: place.sessionId
  })
  if (settings.inputFormat === "text") {
    yield* player.play(place.begin(prompt))
    return played(0)
  }
  const { follow } = yield* Effect.promise(() => import("../terminal/InputLines.ts"))
  const isResumed = settings.continue || Option.isSome(settings.resume)
  const isOver = Deferred.succeed(input, undefined)
  return played(yield* follow(player, place, { first: prompt, isResumed }, isOver))
}, Effect.scoped)

/** Shows an array of events at a time. */
const shower = Effect.fnUntraced(function* (plan: Plan) {
  const { policy, settings } = plan
  const screen = yield* Screen.Screen
  const { hide, show } =
    settings.outputFormat === "stream-json"
      ? { show: Output.json(screen), hide: Effect.void }
      : Output.text(screen, {
          answering: answeringOf(plan),
          fallbacks: settings.fallbackModel.map(({ name }) => name),
          asks: (call) => Requests.isAsked(policy, call)
        })
  const note = ModelTable.noting(screen, Option.isSome(settings.maxCost))
  const answers = settings.outputFormat === "text" ? outputsOf : () => ""
  const all = (events: ReadonlyArray<AgentEvent>) =>
    Effect.andThen(Effect.andThen(show(events), note(events)), screen.out(answers(events)))
  return { show: all, hide }
})

const answeringOf = ({ isTyped, policy, settings }: Plan): Output.Answering => {
  if (settings.outputFormat !== "text" || isTyped) return "never"
  // The plan may be the answer, and words before its call are none.
  if (settings.plan && policy.asked === "deny") return "whole"
  return settings.print && process.stdout.isTTY !== true ? "whole" : "streamed"
}

/** The typed outputs, one on each line, and the plan that is the answer. */
const outputsOf = (events: ReadonlyArray<AgentEvent>): string => events.map(outputOf).join("")

const outputOf = (event: AgentEvent): string => {
  if (event._tag === "Output" && event.path === undefined) return `${JSON.stringify(event.value)}\n`
  const plan = PlanTool.answerIn(event)
  return plan === undefined ? "" : `${Inert.text(plan.trimEnd())}\n`
}

/** Writes the answer to the file of `--output` and returns the exit code. */
const save = Effect.fnUntraced(function* ({ settings }: Plan, outcome: Outcome.Outcome) {
  const answer = Outcome.answerOf(outcome)
  if (Option.isNone(settings.output) || answer === undefined) return ExitCode.answered
  const file = settings.output.value
  const written = yield* Effect.result(
    FileSystem.FileSystem.use((files) => files.writeFileString(file, `${answer}\n`))
  )
  if (Result.isSuccess(written)) return ExitCode.answered
  yield* Screen.complain(`The answer could not be written to ${file}: ${written.failure.message}`)
  return ExitCode.failed
})

// An interrupted command gets half a second between SIGTERM and SIGKILL, which this process must live to send.
const childrenGone = until(() => !process.getActiveResourcesInfo().includes("ProcessWrap"), "700 millis")

// ───────────────────────── The session in this process

/** Opens the session of a prompt, and makes its agent. The modules of `LiveRuns` would add a sixth to the CPU of a start. */
const agentOf = Effect.fnUntraced(function* (plan: AgentSetup.Plan, policy: Requests.Policy) {
  const opened = yield* sessionOf(plan.settings)
  if (plan.prompt !== undefined) yield* Effect.forEach(voided(opened), Screen.complain)
  const agent = yield* AgentSetup.make(plan, opened, policy)
  const { queues, requests } = agent
  const open = Effect.map(requests, ({ approvals, questions }) => [
    ...approvals.map(({ approvalId }) => approvalId),
    ...questions.map(({ questionId }) => questionId)
  ])
  const place: Playing.Place = {
    sessionId: opened?.session.id,
    isSuspended: opened?.session.restored.open?.isSuspended === true,
    isShared: false,
    begin: (prompt) =>
      prompt === undefined
        ? Stream.catchTag(agent.continueStream, "InvalidContinuation", () =>
            Stream.fail(Playing.nothingOpen())
          )
        : agent.stream(prompt),
    isOpen: (id) => Effect.map(open, (ids) => ids.includes(id)),
    answer: (id, reply) =>
      "decision" in reply
        ? Effect.as(agent.answer(id, reply), undefined)
        : Effect.as(agent.answer(id, reply), undefined),
    steer: agent.steer,
    followUp: agent.followUp,
    cancel: agent.cancel,
    isReady: (isSuspended) =>
      isSuspended
        ? Effect.map(open, ({ length }) => length === 0)
        : Effect.map(queues.sizes, ({ followUp, steering }) => followUp + steering > 0),
    clear: queues.clear("all")
  }
  return place
})

/** The session of the run, `undefined` if it has none. */
const sessionOf = Effect.fnUntraced(function* (settings: Settings.Settings) {
  const { fork, name, resume, store } = settings
  if (settings.noSession) return undefined
  const isWanted = [resume, fork, name].some(Option.isSome) || Option.isSome(store)
  const opening = Effect.tap(Sessions.open(settings), ({ session }) => {
    const remark = Sessions.remarkOn(session.id, session.damage)
    return remark === undefined ? Effect.void : Screen.complain(remark)
  })
  if (isWanted) return yield* opening
  return yield* Effect.catchTag(opening, "SessionError", ({ message }) =>
    Effect.as(Screen.complain(`The conversation is not kept. ${message}`), undefined)
  )
})

/** The calls that a person has approved, and that a prompt makes void. */
const voided = (opened: Sessions.Opened | undefined): ReadonlyArray<string> =>
  (opened?.session.restored.open?.approvals ?? []).flatMap(({ answer, request: { params, toolName } }) =>
    answer?.decision === "approve"
      ? [`The approved call ${Output.titleOf(toolName, params)} was not run: a new prompt came first.`]
      : []
  )
