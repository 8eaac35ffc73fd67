/**
 * Plays a scenario, without knowing what is under test: issues its ops, puts in those that are due at a place of the
 * run, asks its hooks and listeners, and keeps what happened in order.
 */
import { Cause, Effect, Exit, Fiber, Option, Scope } from "effect"
import { renamed, type Words } from "./words.ts"

/** What the thing under test can be told. An op that fails, fails with the scenario's word for it. */
export interface Session {
  readonly ops: Readonly<Record<string, (op: Words) => Effect.Effect<unknown, string>>>
  /** What can be seen of it right now. */
  readonly snapshot: () => Words
  /** The transcript, and how long the caller's own list of messages is, if it has one. */
  readonly messages: () => ReadonlyArray<Words>
  readonly callerMessages?: () => number
}

/** How the scenarios name an event: its type, if they have one for it, and a label that says more. */
export type NameOf = (event: Words, roles: ReadonlyMap<string, string>) => Named
interface Named {
  readonly label: string
  readonly type: string | undefined
}

/** Ops that take time: put in at a place of a run, they go on beside it. */
const slow: ReadonlySet<string> = new Set(["prompt", "continue", "waitForIdle", "waitForLabel", "sleep"])
const reported: ReadonlySet<string> = new Set(["prompt", "continue", "waitForIdle"])

export class Stage {
  readonly input: Words
  session: Session = { ops: {}, snapshot: () => ({}), messages: () => [] }
  readonly events: Array<Words> = []
  readonly requests: Array<Words> = []
  readonly order: Array<string> = []
  readonly ops: Array<Words> = []
  readonly hooks: Array<Words> = []
  readonly executions: Array<Words> = []
  readonly states: Array<Words> = []
  /** What the projection takes as it is. */
  readonly recorded = {
    order: this.order,
    ops: this.ops,
    hooks: this.hooks,
    executions: this.executions,
    states: this.states
  }
  /** What the application calls its own messages, by id. */
  readonly roles = new Map<string, string>()
  readonly running = { now: 0, most: 0 }
  private readonly background: Array<Fiber.Fiber<void>> = []
  private readonly counts = new Map<unknown, number>()
  private readonly scopes = new Map<string, Scope.Closeable>()
  private readonly nameOf: NameOf

  constructor(input: Words, nameOf: NameOf) {
    this.input = input
    this.nameOf = nameOf
  }

  /** Runs the actions, then waits until everything in the background has settled. */
  readonly play = Effect.fnUntraced({ self: this }, function* (session: Session) {
    this.session = session
    for (const op of this.input.actions) yield* this.issue(op, op.background === true)
    for (const fiber of this.background) yield* Fiber.await(fiber)
  })

  /** Keeps an event, and does what is to be done before it returns. */
  readonly saw = (event: Words): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { label, type } = this.nameOf(event, this.roles)
      this.events.push(event)
      this.order.push(label)
      if (this.input.recordStates === true && type !== undefined) {
        const { pendingToolCalls: pending, ...state } = this.session.snapshot()
        this.states.push({ ...state, pending })
      }
      return this.fire({ event: [label, type] })
    })

  /** Subscribes the recorder, then the listeners of the scenario. */
  readonly listen = Effect.fnUntraced(
    { self: this },
    function* (
      subscribe: (listener: (event: Words) => Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    ) {
      yield* subscribe(this.saw)
      for (const words of this.input.listeners ?? []) {
        const scope = yield* Scope.make()
        this.scopes.set(words.id, scope)
        yield* Scope.provide(
          subscribe((event) => this.hear(words, this.nameOf(event, this.roles))),
          scope
        )
      }
    }
  )

  private readonly hear = Effect.fnUntraced(
    { self: this },
    function* ({ delayMs, id, on, throwMessage, throwsOn, unsubscribeSelf }: Words, { label, type }: Named) {
      if (on === undefined ? type === undefined : !on.includes(label) && !on.includes(type)) return
      this.order.push(`listener:${id}:start:${label}`)
      if (throwsOn === label || (type !== undefined && throwsOn === type)) {
        return yield* Effect.die(new Error(throwMessage))
      }
      if (delayMs !== undefined) yield* Effect.sleep(delayMs)
      if (unsubscribeSelf === true) yield* this.unsubscribe(id)
      this.order.push(`listener:${id}:done:${label}`)
    }
  )

  private unsubscribe(id: string): Effect.Effect<void> {
    const scope = this.scopes.get(id)
    return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
  }

  /** Invokes a hook: what it returns, or an `Error` with what it throws. `call` is the tool call it is about. */
  readonly ask = Effect.fnUntraced(
    { self: this },
    function* (point: string, hook: Words, call: Words, facts: object) {
      const toolCall = call && { toolCallId: call.id, toolName: call.name }
      this.hooks.push(structuredClone({ point, id: hook.id, ...toolCall, ...facts }))
      const name = hook.id === undefined ? point : `${point}.${hook.id}`
      this.order.push(`hook:${name}${call === undefined ? "" : `:${call.id}`}`)
      const fits = ({ match = {} }: Words) =>
        Object.keys(match).every((key) => match[key] === toolCall?.[key])
      const action = hook.calls?.[this.count(hook) - 1] ?? hook.rules?.find(fits) ?? hook.always ?? {}
      yield* this.fire({ hook: point })
      if (action.never === true) return yield* Effect.never
      if (action.delayMs !== undefined) yield* Effect.sleep(action.delayMs)
      if (action.throws !== undefined) return yield* Effect.fail(new Error(action.throws))
      return action.return
    }
  )

  /** What a tool does but its result: it fails, or gives the behaviour the result is made by. */
  readonly execute = Effect.fnUntraced(
    { self: this },
    function* (tool: Words, toolCallId: string, args: Words, show: (update: Words) => Effect.Effect<void>) {
      const given = { ...tool.behaviour, ...tool.perCall?.[toolCallId] }
      const round = this.count(`${tool.name} ${toolCallId}`) - 1
      const act = { ...given, ...(given.attempts?.[round] ?? given.attempts?.at(-1)) }
      this.executions.push({ toolCallId, toolName: tool.name, args: structuredClone(args) })
      this.order.push(`tool:execute:${toolCallId}`)
      yield* Effect.acquireRelease(this.change(1), () => this.change(-1))
      yield* this.fire({ tool: toolCallId })
      for (const update of act.updates ?? []) {
        if (update.afterMs !== undefined) yield* Effect.sleep(update.afterMs)
        yield* show(update)
      }
      if (act.lateUpdateMs !== undefined) {
        yield* Effect.forkDetach(Effect.delay(show({ text: "late" }), act.lateUpdateMs))
      }
      if (act.never === true || act.delayMs !== undefined) {
        const wait = act.never === true ? Effect.never : Effect.sleep(act.delayMs)
        // What ignores an abort goes on, but nobody waits for it any more.
        yield* act.ignoresAbort === true ? Effect.flatMap(Effect.forkDetach(wait), Fiber.join) : wait
      }
      Object.assign(args, act.mutateArgs)
      if (act.throws !== undefined) return yield* Effect.fail(new Error(act.throws))
      return "throwsValue" in act ? yield* Effect.fail(act.throwsValue) : act
    }
  )

  /** The raw arguments of a tool before they are read. */
  readonly prepare = ({ rename = {}, throws }: Words, raw: Words): Words => {
    if (throws !== undefined) throw new Error(throws)
    return renamed(raw, (key, value) => [rename[key] ?? key, value])
  }

  /** Each hook with its point, but those that are asked for keys. */
  readonly hooksAt = (): ReadonlyArray<readonly [point: string, hook: Words]> => {
    const { getApiKey: _, ...points } = this.input.hooks ?? {}
    return Object.entries<Words>(points).flatMap(([point, given]) =>
      // A shaper stands alone, and says what to do in place of what to return.
      (Array.isArray(given) ? given : [{ always: { throws: given.throws, return: given } }]).map(
        (hook) => [point, hook] as const
      )
    )
  }

  /** What a poll of the stateless loop gives: each batch once. */
  readonly poll = (point: string): Effect.Effect<Words> =>
    Effect.sync(() => {
      this.order.push(`poll:${point}`)
      return this.input.queues?.[point]?.[this.count(`poll:${point}`) - 1] ?? []
    })

  /** Issues the ops that are due at this place: where several words name it, any of them. */
  readonly fire = (place: object): Effect.Effect<void> =>
    Effect.suspend(() => {
      const isHere = ({ at }: Words) =>
        Object.entries(place).every(([key, value]) => key in at && [value].flat().includes(at[key]))
      const isDue = (injection: Words) =>
        isHere(injection) && this.count(injection) === (injection.at.nth ?? 1)
      const ops = (this.input.injections ?? []).filter(isDue).flatMap((injection: Words) => injection.do)
      return Effect.forEach(ops, (op: Words) => this.issue(op, slow.has(op.op)), { discard: true })
    })

  private issue(op: Words, background: boolean): Effect.Effect<void> {
    return Effect.suspend(() => {
      const record: Words = { op: op.op }
      this.ops.push(record)
      this.order.push(`op:${op.op}`)
      const settled = Effect.map(Effect.exit(this.perform(op)), (exit) => {
        Object.assign(
          record,
          Exit.isSuccess(exit) ? { ok: true, value: exit.value } : { error: wordOf(exit.cause) }
        )
        if (reported.has(op.op)) this.order.push(`done:${op.op}`)
      })
      if (!background) return settled
      // At once: a prompt that would find the agent busy must find it now.
      const fork = Effect.forkDetach(settled, { startImmediately: true })
      return Effect.map(fork, (fiber) => void this.background.push(fiber))
    })
  }

  private perform(op: Words): Effect.Effect<unknown, unknown> {
    if (op.op === "unsubscribe") return this.unsubscribe(op.id)
    if (op.op === "sleep") return Effect.sleep(op.ms)
    if (op.op === "waitForLabel") {
      const until = () => this.order.includes(op.label)
      return Effect.sleep(1).pipe(
        Effect.repeat({ until }),
        Effect.timeout(3000),
        Effect.mapError(() => "timeout"),
        Effect.asVoid
      )
    }
    return this.session.ops[op.op]?.(op) ?? Effect.die(new Error(`No op ${op.op} here`))
  }

  /** How often this was counted, this time included. */
  private count(what: unknown): number {
    const count = (this.counts.get(what) ?? 0) + 1
    this.counts.set(what, count)
    return count
  }

  private change(by: number): Effect.Effect<void> {
    return Effect.sync(() => {
      this.running.now += by
      this.running.most = Math.max(this.running.most, this.running.now)
    })
  }
}

const wordOf = (cause: Cause.Cause<unknown>): unknown =>
  Option.getOrElse(Cause.findErrorOption(cause), () => "defect")
