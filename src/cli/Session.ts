/** Runs the agent once, shows its events, and returns the exit code. */
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import type { Scope } from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../Agent.ts"
import type { Provider } from "../Provider.ts"
import * as Tools from "../tools/Tools.ts"
import * as Approval from "./Approval.ts"
import * as ExitCode from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import type { Keyboard } from "./Keyboard.ts"
import type { Choice as CommandSandbox } from "./CommandSandbox.ts"
import * as ListPrices from "./ListPrices.ts"
import type { Choice } from "./ModelChoice.ts"
import * as ModelNotes from "./ModelNotes.ts"
import * as Outcome from "./Outcome.ts"
import { Screen } from "./Screen.ts"
import type { Settings } from "./Settings.ts"
import * as Signals from "./Signals.ts"
import * as SystemPrompt from "./SystemPrompt.ts"
import * as Telemetry from "./Telemetry.ts"
import * as TextOutput from "./TextOutput.ts"

type Services =
  | ChildProcessSpawner
  | FileSystem.FileSystem
  | Keyboard
  | Path.Path
  | Provider
  | Screen
  | Signals.Signals

/** The input of a run. */
export interface Plan {
  readonly settings: Settings
  readonly prompt: string
  readonly choice: Choice
  /** The options of the tool `shell`. */
  readonly shell: CommandSandbox["options"]
}

/** Runs a plan and reports its outcome. Fails only before the first request. */
export const run = Effect.fnUntraced(
  function* (plan: Plan) {
    const ask = yield* canAsk(plan)
    const { ending, outcome } = yield* play(plan)
    yield* childrenGone
    if (ending !== undefined) return Signals.exitCode(ending)
    const { code, remark } = Outcome.verdict(outcome, (refused) =>
      Approval.advice({ ask, deny: plan.settings.deny }, refused)
    )
    if (remark !== undefined) yield* complain(remark)
    // The output of a run without an answer must not replace an answer from an earlier run.
    return code === ExitCode.answered ? yield* save(plan, outcome) : code
  },
  (effect, { choice }) =>
    Effect.provide(effect, [choice.provider, ListPrices.layer, Telemetry.layer(process.env)])
)

const canAsk = ({ settings }: Plan) =>
  Screen.use(({ isInteractive }) =>
    Effect.succeed(
      isInteractive && !settings.print && Option.getOrElse(settings.approve, () => "ask") === "ask"
    )
  )

/** Polls `isSo` until it is true or the time is over. */
const until = (isSo: () => boolean, patience: Duration.Input): Effect.Effect<void> => {
  const look: Effect.Effect<void> = Effect.suspend(() =>
    isSo() ? Effect.void : Effect.andThen(Effect.sleep("10 millis"), look)
  )
  return Effect.asVoid(Effect.timeoutOption(look, patience))
}

interface Played {
  readonly outcome: Outcome.Outcome
  /** The signal or closed pipe that ended the run, if any. */
  readonly ending: Signals.Ending | undefined
}

const play = Effect.fnUntraced(function* (plan: Plan): Effect.fn.Return<Played, never, Services | Scope> {
  const screen = yield* Screen
  let outcome = Outcome.initial
  const agent = yield* agentFor(plan, (toolCallId) => () => outcome.started.has(toolCallId))
  const { ending } = yield* Signals.Signals
  let ended: Signals.Ending | undefined
  // Cancels through the agent instead of interrupting, so that the last events are shown.
  const onEnding = Effect.flatMap(ending, (kind) => {
    ended = kind
    return agent.cancel(kind)
  })
  yield* Effect.forkScoped(onEnding)
  const { make } =
    plan.settings.outputFormat === "stream-json"
      ? yield* Effect.promise(() => import("./JsonOutput.ts"))
      : TextOutput
  const show = make(screen)
  const note = ModelNotes.make(screen)
  const exit = yield* Effect.exit(
    Stream.runForEachArray(agent.stream(plan.prompt), (events) =>
      Effect.map(Effect.andThen(show(events), note(events)), () => {
        outcome = events.reduce(Outcome.fold, outcome)
      })
    )
  )
  if (Exit.isFailure(exit)) {
    yield* Effect.logDebug("The run failed", exit.cause)
    // The events of a failed run contain its error. Another failure is a bug.
    if (outcome.status === undefined) return yield* Effect.die(Cause.squash(exit.cause))
  }
  return { outcome, ending: ended }
}, Effect.scoped)

const agentFor = Effect.fnUntraced(function* (plan: Plan, isShown: (toolCallId: string) => () => boolean) {
  const { choice, settings, shell } = plan
  const root = (yield* Path.Path).resolve(settings.cwd)
  const { effort, maxCost, maxTokens, maxTokensTotal, maxTurns, temperature, timeout } = settings
  const shown = (toolCallId: string) => until(isShown(toolCallId), "500 millis")
  return yield* Agent.make({
    model: choice.model,
    agent: { name: "effect-agent" },
    system: SystemPrompt.make(root, settings),
    tools: Tools.make({ root, shell }).filter(({ name }) => settings.tools.includes(name)),
    hooks: [Approval.hook(yield* policyOf(plan, root, shown))],
    modelOptions: {
      ...(Option.isSome(effort) ? { thinkingLevel: effort.value } : {}),
      ...(Option.isSome(maxTokens) ? { maxTokens: maxTokens.value } : {}),
      ...(Option.isSome(temperature) ? { temperature: temperature.value } : {})
    },
    limits: {
      ...(Option.isSome(maxTurns) ? { maxTurns: maxTurns.value } : {}),
      ...(Option.isSome(maxCost) ? { maxCost: maxCost.value } : {}),
      ...(Option.isSome(maxTokensTotal) ? { maxTotalTokens: maxTokensTotal.value } : {}),
      ...(Option.isSome(timeout) ? { executionTime: timeout.value } : {})
    }
  }).pipe(Effect.orDie)
})

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
  const { err, paint } = yield* Screen
  yield* err(`${paint.red("effect-agent:")} ${Inert.line(remark)}\n`)
})

// An interrupted command gets half a second between SIGTERM and SIGKILL, which this process must live to send.
const childrenGone = until(() => !process.getActiveResourcesInfo().includes("ProcessWrap"), "700 millis")

const policyOf = Effect.fnUntraced(function* (plan: Plan, root: string, shown: Approval.Policy["shown"]) {
  const { allow, approve, deny, yes } = plan.settings
  const isAllowed = yes || Option.contains(approve, "allow")
  return { allow, deny, yes: isAllowed, ask: yield* canAsk(plan), root, shown }
})
