/** Stores that stop taking writes, as those of a process that is killed, and a run to kill. */
import { Deferred, Effect, Exit, Latch, Layer, Schema, Scope, Stream } from "effect"
import { Agent, Approval, type Message, type RunOptions, type Session, Tool } from "effect-agent"
import { Agents, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { placesOf } from "./host.ts"

/** Counts the writes of a process. */
export class Life {
  writes = 0
  readonly over = Deferred.makeUnsafe<void>()
  /** The sessions that the process has open. */
  readonly opened: Array<{ readonly scope: Scope.Closeable; readonly isOpen: Deferred.Deferred<void> }> = []
  private last: number
  /** The writes under way, and a latch that is open while there is none. */
  private running = 0
  private readonly quiet = Latch.makeUnsafe(true)
  private readonly ended = Effect.suspend(() => (--this.running === 0 ? this.quiet.open : Effect.void))

  /** `last`: the number of the first write that is not done. */
  constructor(last: number) {
    this.last = last
  }

  /** Does no more than so many writes from now on. */
  endAfter(writes: number): void {
    this.last = this.writes + writes + 1
  }

  get isOver(): boolean {
    return this.writes >= this.last
  }

  write<A, E, R>(write: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.writes++
      if (!this.isOver) {
        this.running++
        this.quiet.closeUnsafe()
        return Effect.ensuring(write, this.ended)
      }
      Deferred.doneUnsafe(this.over, Effect.void)
      return Effect.never
    })
  }

  /** Kills the process now. */
  readonly end = Effect.sync(() => {
    this.last = 0
    Deferred.doneUnsafe(this.over, Effect.void)
  })

  /** Releases what the system releases for a process that is gone. The writes that it had begun come to their ends first. */
  readonly bury = Effect.suspend(() => {
    const released = Effect.forEach(
      this.opened,
      ({ isOpen, scope }) => Effect.andThen(Deferred.await(isOpen), Scope.close(scope, Exit.void)),
      { discard: true }
    )
    return Effect.andThen(this.quiet.await, released)
  })
}

export interface Disk {
  readonly sessions: SessionStore.Service
  readonly logs: RunLogStore.Service
}

/** Stores in memory. */
export const disk: Effect.Effect<Disk> = Effect.gen(function* () {
  const logs = yield* Effect.provide(RunLogStore.RunLogStore, RunLogStore.layerMemory)
  return { sessions: SessionStore.make(MemorySessionStore.storage()), logs }
})

const mortal = <S extends Session.Session>(life: Life, session: S): S => ({
  ...session,
  id: session.id,
  get restored() {
    return session.restored
  },
  record: (records: Parameters<S["record"]>[0]) => life.write(session.record(records)),
  child: (toolCallId: string) => Effect.map(session.child(toolCallId), (part) => mortal(life, part))
})

const mortalStore = (life: Life, session: SessionStore.OpenSession): SessionStore.OpenSession => ({
  ...mortal(life, session),
  log: (lines) => life.write(session.log(lines)),
  childOf: (toolCallId) => Effect.map(session.childOf(toolCallId), (part) => mortal(life, part))
})

const opening = (life: Life, open: ReturnType<SessionStore.Service["open"]>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const isOpen = Deferred.makeUnsafe<void>()
    life.opened.push({ scope, isOpen })
    const session = yield* Effect.ensuring(Scope.provide(open, scope), Deferred.succeed(isOpen, undefined))
    yield* Effect.addFinalizer(() => (life.isOver ? Effect.void : Scope.close(scope, Exit.void)))
    return mortalStore(life, session)
  })

/** The stores of a process with a life. */
export const storesOf = ({ logs, sessions }: Disk, life: Life) =>
  Layer.mergeAll(
    Layer.succeed(SessionStore.SessionStore, {
      ...sessions,
      create: (session) => life.write(opening(life, sessions.create(session))),
      open: (sessionId) => opening(life, sessions.open(sessionId))
    }),
    Layer.succeed(RunLogStore.RunLogStore, {
      ...logs,
      open: (run, first) =>
        Effect.map(
          life.write(logs.open(run, first)),
          (append): RunLogStore.Append =>
            (lines) =>
              life.write(append(lines))
        ),
      end: (run) => life.write(logs.end(run)),
      begun: (run) => life.write(logs.begun(run)),
      progressed: (run) => life.write(logs.progressed(run)),
      addKey: (sessionId, line) => life.write(logs.addKey(sessionId, line))
    })
  )

/** The effects of tools outside of the process, by tool and by key. */
export class World {
  readonly effects: Array<readonly [tool: string, key: string]> = []
  modelCalls = 0
  /** The agents that work in it. */
  readonly agents: (world: World, limits?: RunOptions.RunOptions["limits"]) => Layer.Layer<Agents.Agents>

  constructor(agents: World["agents"] = agentsOf) {
    this.agents = agents
  }

  /** Has the effect of a call. */
  readonly act = (tool: string) =>
    Effect.map(Tool.ToolContext, ({ idempotencyKey }) => {
      this.effects.push([tool, idempotencyKey])
      return `${tool} done`
    })

  tool(name: string, effect: "pure" | "idempotent" | "once") {
    return Tool.make({
      name,
      description: name,
      effect,
      params: Schema.Struct({ n: Schema.Number }),
      execute: () => Effect.andThen(Effect.yieldNow, this.act(name))
    })
  }
}

const usage = { input: 10, output: 5, total: 15 }
export const turns = 10

const answersOf = (messages: ReadonlyArray<Message.Message>): number =>
  messages.filter(({ role }) => role === "assistant").length

/** Calls two tools in each of nine turns, and answers in the tenth. */
const plan: ReadonlyArray<readonly [string, string]> = [
  ["look", "look"],
  ["put", "look"],
  ["pay", "put"],
  ["deploy", "look"],
  ["research", "put"],
  ["pay", "pay"],
  ["look", "put"],
  ["deploy", "pay"],
  ["put", "research"]
]

const call = (name: string, n: number) =>
  Step.toolCall(name, name === "research" ? { prompt: `Find ${n}` } : { n }, { id: `call_${n % 2}` })

const provider = (world: World): ScriptedProvider.Script =>
  Array.from({ length: 60 }, () => ({ messages, system }): ScriptedProvider.Turn => {
    world.modelCalls++
    const at = answersOf(messages)
    const text = Step.text(["Well, ", `turn ${at + 1}.`])
    if (system === "inner") {
      return at < 2
        ? ScriptedProvider.turn(call(at === 0 ? "put" : "pay", 100 + at), Step.finish("toolUse", usage))
        : ScriptedProvider.turn(Step.text(["Found."]), Step.finish("stop", usage))
    }
    const tools = plan[at]
    return tools === undefined
      ? ScriptedProvider.turn(text, Step.finish("stop", usage))
      : ScriptedProvider.turn(
          text,
          ...tools.map((name, index) => call(name, at * 2 + index)),
          Step.finish("toolUse", usage)
        )
  })

const agentsOf = (world: World, limits: RunOptions.RunOptions["limits"] = {}) => {
  const tools = [
    world.tool("look", "pure"),
    world.tool("put", "idempotent"),
    world.tool("pay", "once"),
    world.tool("deploy", "once"),
    Agent.asTool({
      name: "research",
      description: "research",
      agent: {
        model: "any",
        system: "inner",
        tools: [world.tool("put", "idempotent"), world.tool("pay", "once")]
      }
    })
  ]
  const policy = Approval.layer({ rules: [Approval.ask("deploy")], otherwise: "allow", asked: "wait" })
  return Agents.layer(({ session }) => Agent.make({ model: "any", tools, session, limits })).pipe(
    Layer.provide([ScriptedProvider.layer(provider(world)), policy])
  )
}

/** A host that takes runs only by `adopt`. */
export const hostOf = (world: World, disk: Disk, isFull = () => false) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(
      Layer.mergeAll(world.agents(world), storesOf(disk, new Life(Infinity)))
    )
    return yield* Effect.provide(LiveRuns.make({ flush: 0, adopts: true, places: placesOf(isFull) }), context)
  })

/** A process: its runs, on the stores of a disk, until its life is over. */
export const processOf = (world: World, disk: Disk, life: Life, limits?: RunOptions.RunOptions["limits"]) => {
  const agents = world.agents(world, limits)
  return LiveRuns.layer({ flush: 0 }).pipe(Layer.provide([agents, storesOf(disk, life)]))
}

/** Watches a run until its end: approves, and sends one message in its first turn. */
export const drive = Effect.fnUntraced(function* (
  runs: Runs.Service,
  runId: string,
  seen: Array<Runs.Positioned>,
  sent: { steered: boolean }
) {
  const events = yield* runs.events(runId, 0)
  yield* Stream.runForEach(events, (entry) => {
    seen.push(entry)
    const { event } = entry
    if (event._tag === "ApprovalRequested") {
      const { approvalId, argumentsHash } = event
      const answer = { decision: "approve", argumentsHash } as const
      return Effect.ignore(runs.approve(event.runId, approvalId, answer))
    }
    if (event._tag === "TurnEnd" && event.turn === 2 && event.path === undefined && !sent.steered) {
      return Effect.ignore(Effect.map(runs.steer(runId, "By the way."), () => void (sent.steered = true)))
    }
    return Effect.void
  })
})
