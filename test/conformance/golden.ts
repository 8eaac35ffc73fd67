/**
 * Behaviour scenarios: what a run must show, event by event. Plays the input of each through the public API and hands
 * what it showed to the judge beside the folder.
 */
import { Cause, Effect, Exit, Fiber, Layer, Option, References, Scope, Stream, SubscriptionRef } from "effect"
import {
  Agent,
  type AgentEvent,
  HookManager,
  Loop,
  type Message,
  type Provider,
  type RunReport,
  ToolRegistry
} from "effect-agent"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { errorKind, labelOf, project, type Recording, typeOf, type Words } from "./goldenProjection.ts"
import { hooksOf, messagesOf, optionsOf, promptOf, servicesOf, type Stage, toolsOf } from "./goldenScript.ts"
import type { Kind } from "./suite.ts"

export const kind: Kind = async (dir) => {
  const { compare, format } = await import(pathToFileURL(join(dir, "..", "compare.mjs")).href)
  const files = readdirSync(dir).filter((file) => file.endsWith(".json"))
  return {
    concurrency: 4,
    cases: files.toSorted().map((file) => {
      const scenario = JSON.parse(readFileSync(join(dir, file), "utf8"))
      const run = async () => {
        const actual = await play(scenario.input)
        return { actual, problems: compare(scenario, actual).map(format) }
      }
      return { name: scenario.name, title: `${scenario.name} [${scenario.class}]`, run }
    })
  }
}

/** What one api offers to the ops of a scenario. */
interface Session {
  readonly ops: Readonly<Record<string, (op: Words) => Effect.Effect<unknown, object>>>
  readonly messages: () => ReadonlyArray<Message.Message>
  /** What can be seen of it right now, in the words of the scenario. */
  readonly snapshot: () => Words
  readonly callerMessages?: () => number
}

/** The projection of one scenario. One that takes longer than 5 seconds hangs. */
const play = async (input: Words): Promise<Words> => {
  const performance = new Performance(input)
  const started = Date.now()
  const fiber = Effect.runFork(performance.run)
  const exit = await Effect.runPromise(Effect.timeoutOption(Fiber.await(fiber), 5000))
  if (Option.isSome(exit) && Exit.isFailure(exit.value)) throw Cause.squash(exit.value.cause)
  const { recording, session } = performance
  return {
    ...project(recording, session.messages()),
    elapsedMs: Date.now() - started,
    timeout: Option.isNone(exit),
    callerMessages: session.callerMessages?.()
  }
}

class Performance implements Stage {
  readonly input: Words
  readonly roles = new Map<string, string>()
  readonly recording: Recording = {
    ...{ events: [], order: [], requests: [], executions: [], hooks: [], ops: [], states: [] },
    running: { now: 0, most: 0 }
  }
  session: Session = { ops: {}, messages: () => [], snapshot: () => ({}) }
  private readonly background: Array<Fiber.Fiber<void>> = []
  private readonly hits = new Map<Words, number>()

  constructor(input: Words) {
    this.input = input
  }

  readonly run = Effect.suspend(() =>
    Effect.gen({ self: this }, function* () {
      this.session = this.input.api === "agent" ? yield* agentSession(this) : yield* loopSession(this)
      for (const op of this.input.actions) yield* this.issue(op, op.background === true)
      for (const fiber of this.background) yield* Fiber.await(fiber)
    }).pipe(
      Effect.scoped,
      Effect.provide(servicesOf(this)),
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )

  readonly stateMessages = () => this.session.snapshot().messages

  readonly record = (event: AgentEvent.AgentEvent): Effect.Effect<void> =>
    Effect.suspend(() => {
      const [label, type] = [labelOf(event, this.roles), typeOf(event)]
      this.recording.events.push(event)
      this.recording.order.push(label)
      if (this.input.recordStates === true && type !== undefined)
        this.recording.states.push(this.session.snapshot())
      return this.fire({ event: [label, type] })
    })

  readonly fire = (place: object): Effect.Effect<void> =>
    Effect.suspend(() => {
      const isHere = ({ at }: Words) =>
        Object.entries(place).every(([key, value]) => key in at && [value].flat().includes(at[key]))
      const isDue = (injection: Words) => {
        const hit = (this.hits.get(injection) ?? 0) + 1
        this.hits.set(injection, hit)
        return hit === (injection.at.nth ?? 1)
      }
      const due = (this.input.injections ?? []).filter(
        (injection: Words) => isHere(injection) && isDue(injection)
      )
      const ops = due.flatMap((injection: Words) => injection.do)
      return Effect.forEach(ops, (op: Words) => this.issue(op, slow.has(op.op)), { discard: true })
    })

  private issue(op: Words, background: boolean): Effect.Effect<void> {
    return Effect.suspend(() => {
      const record: Words = { op: op.op }
      this.recording.ops.push(record)
      this.recording.order.push(`op:${op.op}`)
      const settled = Effect.exit((this.session.ops[op.op] ?? Effect.die)(op)).pipe(
        Effect.map((exit) => {
          if (Exit.isSuccess(exit)) Object.assign(record, { ok: true, value: exit.value })
          else record.error = errorKind(Option.getOrElse(Cause.findErrorOption(exit.cause), () => ({})))
          if (/^(prompt|continue|waitForIdle)$/.test(op.op)) this.recording.order.push(`done:${op.op}`)
        })
      )
      if (!background) return settled
      // At once: a prompt that would find the agent busy must find it now.
      const fork = Effect.forkDetach(settled, { startImmediately: true })
      return Effect.map(fork, (fiber) => void this.background.push(fiber))
    })
  }
}
/** Ops that take time; put in at a place of a run, they go on beside it. */
const slow: ReadonlySet<string> = new Set(["prompt", "continue", "waitForIdle", "waitForLabel", "sleep"])

const agentSession = Effect.fnUntraced(function* (stage: Performance) {
  const { config = {}, initial = {}, listeners = [] } = stage.input
  const { followUpMode = "one-at-a-time", steeringMode = "one-at-a-time" } = config
  const agent = yield* Agent.make({
    ...{ ...optionsOf(stage.input), steeringMode, followUpMode },
    ...{ tools: toolsOf(stage), hooks: hooksOf(stage), messages: messagesOf(initial.messages, stage) }
  })
  yield* agent.subscribe(stage.record)
  const heard = new Map<string, Scope.Closeable>()
  for (const words of listeners) heard.set(words.id, yield* listen(agent, words, stage))
  const state = () => Effect.runSync(SubscriptionRef.get(agent.state))
  const snapshot = () => {
    const { lastError: errorMessage, messages, pendingToolCalls, phase } = state()
    return {
      isStreaming: phase !== "idle",
      messages: messages.length,
      pendingToolCalls: [...pendingToolCalls],
      pending: [...pendingToolCalls],
      errorMessage
    }
  }
  const ops: Session["ops"] = {
    ...waitsOf(stage),
    prompt: (op) => Effect.asVoid(agent.prompt(promptOf(op, stage))),
    continue: () => Effect.asVoid(agent.resume),
    steer: (op) => agent.steer(promptOf(op, stage)),
    followUp: (op) => agent.followUp(promptOf(op, stage)),
    cancel: ({ reason }) => agent.cancel(reason),
    pause: ({ reason }) => agent.pause(reason),
    resume: () => agent.resumeRun,
    reset: () => agent.reset,
    waitForIdle: () => agent.waitForIdle,
    clearSteeringQueue: () => agent.clearQueue("steering"),
    clearFollowUpQueue: () => agent.clearQueue("followUp"),
    clearAllQueues: () => agent.clearQueue("all"),
    hasQueuedMessages: () => Effect.map(agent.queueSizes, (sizes) => sizes.steering + sizes.followUp > 0),
    queueSizes: () => agent.queueSizes,
    snapshot: () => Effect.sync(snapshot),
    report: () => Effect.map(agent.report, (report) => reportOf(Option.getOrThrow(report))),
    setSteeringMode: ({ mode }) => agent.setQueueMode("steering", mode),
    setFollowUpMode: ({ mode }) => agent.setQueueMode("followUp", mode),
    setTools: ({ tools }) => agent.update({ activeTools: tools }),
    setMessages: ({ messages }) => agent.setMessages(messagesOf(messages, stage)),
    setModel: ({ id }) => agent.update({ model: id }),
    setThinkingLevel: ({ level }) => agent.update({ modelOptions: { thinkingLevel: level } }),
    setSystemPrompt: ({ text }) => agent.update({ system: text }),
    unsubscribe: ({ id }) => Scope.close(heard.get(id) ?? Scope.makeUnsafe(), Exit.void)
  }
  return { ops, messages: () => state().messages, snapshot }
})

const waitsOf = ({ recording }: Stage): Session["ops"] => ({
  sleep: ({ ms }) => Effect.sleep(ms),
  waitForLabel: ({ label }) =>
    Effect.sleep(1).pipe(
      Effect.repeat({ until: () => recording.order.includes(label) }),
      Effect.timeout(3000)
    )
})

const reportOf = ({ audit, history, usage, ...counts }: RunReport.RunReport) => ({
  ...counts,
  ...{ inputTokens: usage.input, outputTokens: usage.output, totalTokens: usage.total },
  historyEntries: history.length,
  audit: audit.map((entry) => entry.type)
})

const listen = Effect.fnUntraced(function* (agent: Agent.Agent, words: Words, stage: Performance) {
  const { delayMs = 0, id, on, throwMessage, throwsOn, unsubscribeSelf } = words
  const scope = yield* Scope.make()
  const hear = Effect.fnUntraced(function* (event: AgentEvent.AgentEvent) {
    const [label, type] = [labelOf(event, stage.roles), typeOf(event)]
    if (on === undefined ? type === undefined : !on.includes(label) && !on.includes(type)) return
    stage.recording.order.push(`listener:${id}:start:${label}`)
    if (throwsOn !== undefined && (throwsOn === label || throwsOn === type))
      yield* Effect.die(new Error(throwMessage))
    yield* Effect.sleep(delayMs)
    if (unsubscribeSelf === true) yield* Scope.close(scope, Exit.void)
    stage.recording.order.push(`listener:${id}:done:${label}`)
  })
  yield* Scope.provide(agent.subscribe(hear), scope)
  return scope
})

const loopSession = Effect.fnUntraced(function* (stage: Performance) {
  const services = yield* Effect.context<Provider.Provider>()
  const [messages, options] = [messagesOf(stage.input.initial?.messages, stage), optionsOf(stage.input)]
  const layer = Layer.mergeAll(ToolRegistry.layer(...toolsOf(stage)), HookManager.layer(...hooksOf(stage)))
  const follow = (events: ReturnType<typeof Loop.resume>) =>
    Stream.runForEach(events, stage.record).pipe(Effect.provide(layer), Effect.provide(services))
  return {
    ops: {
      ...waitsOf(stage),
      prompt: (op: Words) => follow(Loop.stream(promptOf(op, stage), { messages }, options)),
      continue: () => follow(Loop.resume({ messages }, options))
    },
    messages: () => [
      ...messages,
      ...stage.recording.events.flatMap((event) => (event._tag === "MessageEnd" ? [event.message] : []))
    ],
    snapshot: () => ({}),
    callerMessages: () => messages.length
  }
})
