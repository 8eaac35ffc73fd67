/**
 * An interactive session: the runs of one conversation, the messages that wait, and the requests to the person. It says what happens to a
 * face, which is the screen or line mode, and both call it for what the person does.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Payload from "../../api/Payload.ts"
import * as Message from "../../Message.ts"
import type * as Mode from "../agent/Mode.ts"
import * as Outcome from "../agent/Outcome.ts"
import * as TaskList from "../agent/TaskList.ts"
import type * as Playing from "../agent/Playing.ts"
import { retriesOf } from "../agent/Vendors.ts"
import { type Usage, add } from "../../Usage.ts"
import type { Settings } from "../settings/Settings.ts"
import { Asking } from "./Asking.ts"
import type { Face, Services } from "./Face.ts"
import type * as Panels from "./Panel.ts"
import type { Place } from "./Place.ts"
import type { PromptHistory } from "./PromptHistory.ts"
import type { Theme } from "./Theme.ts"
import { Voice } from "./Voice.ts"
import { Transcript } from "./Transcript.ts"
import * as Prompt from "./Prompt.ts"

/** A message that waits for its turn. */
interface Waiting {
  readonly how: "steer" | "next"
  readonly text: string
  readonly sent: string
}

/** A run that has not ended. */
interface Running {
  readonly runId: string
  /** The time of its start in milliseconds since the epoch. */
  readonly from: number
  isStopping: boolean
  /** Whether the model has answered or called a tool, so that the conversation has more than the prompt. */
  hasAnswer: boolean
  /** The words of the retry that the model call waits for. */
  retry:
    | { readonly from: number; readonly delay: number; readonly words: string; readonly count: string }
    | undefined
}

/** The calls and the time that the session has spent in this program. */
export interface Spent {
  modelCalls: number
  toolCalls: number
  ms: number
}

interface Options {
  readonly place: Place
  readonly settings: Settings
  readonly theme: Theme
  readonly face: Face
  readonly history: PromptHistory
  readonly version: string
  readonly sessionId: string
  readonly isMade: boolean
}

/** A time in which a run is to end once the person has stopped it, before the screen says that it has. */
const patience = "900 millis"

export class Session extends Voice {
  readonly place: Place
  readonly settings: Settings
  readonly history: PromptHistory
  readonly version: string
  transcript: Transcript
  id: string
  name: string | undefined
  /** Whether a store has the session. */
  isMade: boolean
  /** Whether the person has sent a prompt. */
  isUsed = false
  model: string
  /** A model that the session gets when its run has ended. */
  nextModel: string | undefined
  effort: string | undefined
  tasks: TaskList.TaskList = TaskList.empty
  run: Running | undefined
  /** A command that works, such as a compaction, and how to stop it. */
  work: { readonly words: string; readonly from: number; readonly fiber: Fiber.Fiber<unknown> } | undefined
  waiting: ReadonlyArray<Waiting> = []
  readonly asking = new Asking(this)
  /** The list that the person has opened. */
  list: Panels.Panel | undefined
  /** The message that the next prompt replaces. */
  replaces: string | undefined
  /** The last prompt, and the id of its message. */
  last:
    | { readonly text: string; readonly messageId: string | undefined; readonly failed: boolean }
    | undefined
  /** Whether the connection to the server is lost. */
  isLost = false
  /** The tokens of the last request and its answer. */
  context = 0
  /** The tokens of the conversation before this program. */
  before: Usage | undefined
  readonly spent: Spent = { modelCalls: 0, toolCalls: 0, ms: 0 }
  /** The outputs of commands of the person, for the next prompt. */
  private outputs: ReadonlyArray<string> = []
  private readonly fork: <A>(effect: Effect.Effect<A, never, Services>) => Fiber.Fiber<A>

  constructor(options: Options, fork: <A>(effect: Effect.Effect<A, never, Services>) => Fiber.Fiber<A>) {
    super(options.theme, options.face)
    this.place = options.place
    this.settings = options.settings
    this.history = options.history
    this.version = options.version
    this.id = options.sessionId
    this.isMade = options.isMade
    this.model = options.place.model
    this.transcript = new Transcript(options.theme)
    this.fork = fork
  }

  get id8(): string {
    return this.id.slice(0, 8)
  }

  /** The tokens of the conversation. */
  get usage(): Usage {
    const { usage } = this.transcript.view
    return this.before === undefined ? usage : add(this.before, usage)
  }

  /** The mode, which decides about calls that run without a question. */
  get mode(): Mode.Mode {
    return MutableRef.get(this.place.policy.mode)
  }

  setMode(mode: Mode.Mode): void {
    MutableRef.set(this.place.policy.mode, mode)
    this.face.changed()
  }

  get isWorking(): boolean {
    return this.run !== undefined || this.work !== undefined
  }

  /** The panel that takes keys. */
  get panel(): Panels.Panel | undefined {
    return this.list ?? this.asking.panels[0]
  }

  /** Runs an effect beside the keys, and says why it failed. */
  do(effect: Effect.Effect<unknown, Playing.Problem | Error, Services>): Fiber.Fiber<unknown> {
    const shown = Effect.catch(effect, (error) => Effect.sync(() => this.fail(wordsOf(error))))
    return this.fork(
      Effect.ensuring(
        shown,
        Effect.sync(() => this.face.changed())
      )
    )
  }

  /** Runs an effect that Esc stops, and says meanwhile that it works. */
  busy(words: string, effect: Effect.Effect<unknown, Playing.Problem | Error, Services>): void {
    const over = Effect.sync(() => {
      this.work = undefined
      this.face.changed()
    })
    const fiber = this.do(Effect.ensuring(effect, over))
    this.work = { words, from: Date.now(), fiber }
    this.face.changed()
  }

  // ───────────────────────── Prompts

  /** Sends a prompt: begins a run, or queues it behind the run that works. */
  readonly send = Effect.fnUntraced(function* (this: Session, text: string) {
    if (this.isWorking) return this.queue(text)
    const { outputs } = this
    const input = yield* Prompt.read(text, outputs, this.settings).pipe(
      Effect.tapError(() => Effect.sync(() => this.face.giveBack(text)))
    )
    this.outputs = []
    this.isUsed = true
    yield* this.begin(text, input)
  })

  private readonly begin = Effect.fnUntraced(function* (this: Session, text: string, input: Message.Input) {
    const { runs, url } = this.place
    const { replaces } = this
    this.last = { text, messageId: undefined, failed: false }
    const from = yield* Clock.currentTimeMillis
    this.run = { runId: "", from, isStopping: false, hasAnswer: false, retry: undefined }
    this.face.changed()
    const started = Effect.gen({ self: this }, function* () {
      yield* this.made
      const modelOptions = this.effort === undefined ? {} : { modelOptions: Prompt.effortOf(this.effort) }
      const options = { ...(url === undefined ? {} : Prompt.optionsOf(this.settings)), ...modelOptions }
      return yield* runs.start({
        sessionId: this.id,
        prompt: input,
        options,
        when: "queue",
        ...(replaces === undefined ? {} : { replaces })
      })
    })
    const { runId } = yield* Effect.tapError(started, () =>
      Effect.sync(() => {
        this.run = undefined
        this.face.giveBack(text)
      })
    )
    this.replaces = undefined
    yield* this.follow(runId, from)
  })

  /** Makes the session in its store, unless it is there. */
  readonly made: Effect.Effect<void, Playing.Problem> = Effect.suspend(() => {
    if (this.isMade) return Effect.void
    const { runs, url } = this.place
    const options = {
      sessionId: this.id,
      ...(this.name === undefined ? {} : { name: this.name }),
      ...(this.model === this.place.model || url !== undefined ? {} : { model: this.model })
    }
    return Effect.map(runs.sessions.create(options), () => void (this.isMade = true))
  })

  /** Gives the session another model: now, or when its run has ended. */
  readonly setModel = Effect.fnUntraced(function* (this: Session, model: string) {
    if (this.run !== undefined) this.nextModel = model
    else if (this.isMade) yield* this.place.runs.sessions.update(this.id, { model })
    this.model = model
    this.face.changed()
  })

  /** Delivers a text to the run at its next turn. */
  steer(text: string): void {
    const { run } = this
    if (run === undefined || run.runId === "" || run.isStopping) return void this.queue(text)
    const sent = Effect.gen({ self: this }, function* () {
      const input = yield* Prompt.read(text, [], this.settings)
      const waiting: Waiting = { how: "steer", text, sent: Prompt.textOf(input) }
      this.waiting = [...this.waiting, waiting]
      this.face.changed()
      yield* this.place.runs.steer(run.runId, input).pipe(
        // The run has ended meanwhile.
        Effect.catch(() =>
          Effect.suspend(() => {
            this.waiting = this.waiting.filter((one) => one !== waiting)
            return this.send(text)
          })
        )
      )
    })
    this.do(sent)
  }

  /** Keeps a text for the end of the run. */
  queue(text: string): void {
    this.waiting = [...this.waiting, { how: "next", text, sent: text }]
    this.face.changed()
  }

  /** Takes the last message that waits, which no one gets then. */
  takeBack(): Effect.Effect<string | undefined> {
    return Effect.gen({ self: this }, function* () {
      const last = this.waiting.at(-1)
      if (last === undefined) return undefined
      if (last.how === "steer") {
        const taken = yield* this.clearQueue
        if (taken === undefined) return undefined
        const others = this.waiting.filter(({ how }) => how === "steer").slice(0, -1)
        for (const { sent } of others)
          if (this.run !== undefined) yield* Effect.ignore(this.place.runs.steer(this.run.runId, sent))
      }
      this.waiting = this.waiting.filter((one) => one !== last)
      this.face.changed()
      return last.text
    })
  }

  /** Removes the messages that the run has not taken; `undefined` where that cannot be. */
  private readonly clearQueue = Effect.suspend(() => {
    const { agent } = this.place
    if (agent === undefined) return Effect.undefined
    return agent(this.id).pipe(
      Effect.flatMap(({ queues }) => queues.clear("all")),
      Effect.orElseSucceed(() => undefined)
    )
  })

  /** Keeps what a command of the person wrote for the next prompt. */
  remember(output: string): void {
    this.outputs = [...this.outputs, output]
  }

  // ───────────────────────── The run

  /** Looks whether the server is there while nothing runs, until it is interrupted. */
  readonly watched: Effect.Effect<never> = Effect.suspend(() => {
    const look = Effect.map(Effect.exit(this.place.runs.health), ({ _tag }) => {
      if (this.run !== undefined) return
      const isLost = _tag === "Failure"
      if (isLost && !this.isLost) this.note("Connection lost")
      if (isLost === this.isLost) return
      this.isLost = isLost
      this.face.changed()
    })
    return Effect.forever(Effect.delay(look, "2 seconds"))
  })

  /** Follows a run to its end, also over a lost connection, and the run that continues it. */
  readonly follow = Effect.fnUntraced(function* (this: Session, runId: string, from: number) {
    const { runs } = this.place
    this.run = { runId, from, isStopping: false, hasAnswer: false, retry: undefined }
    this.face.changed()
    let position = 0
    let isOver = false
    while (!isOver && this.run?.runId === runId) {
      const events = Stream.unwrap(runs.events(runId, position))
      const read = Stream.runForEachArray(events, (items) =>
        Effect.sync(() => {
          position = items.at(-1)?.position ?? position
          isOver = items.some(({ event }) => event._tag === "RunEnd" && event.path === undefined)
          this.isLost = false
          this.take(items.map(({ event }) => event))
        })
      )
      const end = yield* Effect.exit(read)
      if (isOver) break
      const state = yield* Effect.exit(runs.get(runId))
      if (state._tag === "Success" && !Payload.isGoing(state.value)) {
        // Its events are gone: it has ended.
        this.run = undefined
        break
      }
      if (end._tag === "Failure" || state._tag === "Failure") {
        if (this.place.url === undefined)
          return yield* Effect.andThen(
            Effect.sync(() => (this.run = undefined)),
            end
          )
        if (!this.isLost) this.note("Connection lost")
        this.isLost = true
        this.face.changed()
        yield* Effect.sleep("1 second")
      }
    }
    if (isOver) yield* this.after
  })

  private take(events: ReadonlyArray<AgentEvent>): void {
    this.face.events(events, this.transcript.add(events, this.face.width()))
    this.tasks = events.reduce(TaskList.step, this.tasks)
    for (const event of events) this.one(event)
    this.face.changed()
  }

  private one(event: AgentEvent): void {
    const { run } = this
    switch (event._tag) {
      case "MessageEnd":
        if (event.message.role === "user" && event.path === undefined) this.delivered(event.message)
        if (run !== undefined && event.message.role === "assistant")
          run.hasAnswer ||= event.message.content.length > 0
        return
      case "ModelCallRetry":
        if (run !== undefined && event.path === undefined)
          run.retry = {
            from: Date.now(),
            delay: event.delayMs,
            count: `${event.attempt} of ${retriesOf(event.error)}`,
            words: Outcome.beforeRetry(event.error)
          }
        return
      case "ModelCallStart":
        if (run !== undefined) run.retry = undefined
        return
      case "ModelCallEnd":
        this.spent.modelCalls++
        if (event.path === undefined && event.usage !== undefined)
          this.context = event.usage.input + event.usage.output
        return
      case "ToolExecutionEnd":
        this.spent.toolCalls++
        return this.asking.take(event)
      case "RunEnd":
        if (event.path === undefined) this.ended(event)
        return
      default:
        return this.asking.take(event)
    }
  }

  /** A message of the person stands in the transcript now. */
  private delivered(message: Message.User): void {
    const text = Message.textOf(message)
    const at = this.waiting.findIndex(({ how, sent }) => how === "steer" && sent === text)
    if (at >= 0) this.waiting = this.waiting.toSpliced(at, 1)
    // Messages of hooks follow the prompt.
    else if (this.last !== undefined)
      this.last = { ...this.last, messageId: this.last.messageId ?? message.id }
  }

  private ended({ durationMs, error, status, usage: _usage }: OfTag<"RunEnd">): void {
    const { run } = this
    this.run = undefined
    this.spent.ms += durationMs ?? 0
    if (status !== "suspended") this.asking.clear()
    const isGood = status === "completed" || status === "terminated" || status === "stopped"
    if (this.last !== undefined) {
      // The work of the model stays in the conversation: the prompt comes again behind it.
      const messageId = run?.hasAnswer === true ? undefined : this.last.messageId
      this.last = { ...this.last, messageId, failed: !isGood && status !== "suspended" }
    }
    if (status === "cancelled" && run?.isStopping !== true) this.say("Stopped.")
    if (error !== undefined) this.failure(error)
    else if (status === "incomplete") this.note("The answer was cut short.")
    if (run !== undefined && Date.now() - run.from >= 10_000) this.face.notify("done")
    if (!isGood && status !== "suspended") this.returnWaiting()
  }

  private failure(error: NonNullable<OfTag<"RunEnd">["error"]>): void {
    if (error._tag === "LimitExceeded") {
      const max = error.limit === "executionTime" ? `${error.max / 1000} s` : error.max
      return this.say(`Limit reached: ${error.limit} ${max}. Enter a prompt, or /retry, to go on.`)
    }
    const host = Prompt.offlineHost(error)
    if (host === undefined)
      return this.fail(Outcome.explain(error), "/retry sends it again · /model chooses another model")
    this.fail(
      `Offline: ${host} cannot be reached. Your prompt is kept.`,
      "/retry sends it again · /model chooses another model"
    )
  }

  /** Puts the messages that wait back into the input. */
  private returnWaiting(): void {
    if (this.waiting.length > 0) this.face.giveBack(this.waiting.map(({ text }) => text).join("\n"))
    this.waiting = []
  }

  /** Sends what waits for the end of the run. */
  private readonly after: Effect.Effect<void, Playing.Problem | Error, Services> = Effect.suspend(() => {
    const model = this.nextModel
    this.nextModel = undefined
    const changed =
      model === undefined ? Effect.void : Effect.ignore(this.place.runs.sessions.update(this.id, { model }))
    const left = this.waiting.filter(({ how }) => how === "steer")
    const cleared = left.length > 0 || this.run === undefined ? this.clearQueue : Effect.undefined
    return Effect.andThen(
      Effect.andThen(changed, cleared),
      Effect.suspend(() => {
        if (this.run !== undefined) return Effect.void
        // A message that came after the last turn is the next prompt.
        const [next, ...others] = this.waiting
        if (next === undefined) return Effect.void
        this.waiting = others
        return this.send(next.text)
      })
    )
  })

  /** Stops what works. */
  stop(): void {
    const { run, work } = this
    if (work !== undefined) {
      this.do(Fiber.interrupt(work.fiber))
      return this.say("Stopped.")
    }
    if (run === undefined || run.isStopping) return
    const stopped = Effect.gen({ self: this }, function* () {
      if (run.runId !== "") yield* Effect.ignore(this.place.runs.cancel(run.runId, "the user stopped it"))
      yield* Effect.sleep(patience)
      if (this.run !== run) return
      // It still ends, without the person.
      run.isStopping = true
      this.say("Stopped.")
      this.asking.clear()
      this.returnWaiting()
      this.run = undefined
    })
    this.do(stopped)
  }

  /** Opens a list of the person's. */
  show(panel: Panels.Panel): void {
    this.list = panel
    this.face.changed()
  }

  hide(): void {
    this.list = undefined
    this.face.changed()
  }
}

/** Makes a session whose work ends with the scope. */
export const make = Effect.fnUntraced(function* (options: Options) {
  const run = yield* FiberSet.makeRuntime<Services>()
  return new Session(options, (effect) => run(effect))
})

/** A failure in words. */
export const wordsOf = (error: Error & { readonly title?: string; readonly detail?: string }): string => {
  const words = [error.title ?? "", error.detail ?? ""].filter((text) => text !== "").join(": ")
  return words === "" ? error.message : words
}
