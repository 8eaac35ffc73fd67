/**
 * Runs effects and streams of an agent as promises and async iterables.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import type * as Agent from "../../Agent.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as Events from "./Events.ts"
import { eventsOnly } from "../../internal/eventsOnly.ts"
import * as Inspection from "./Inspection.ts"
import { AgentClosed } from "../../internal/errors.ts"

/** The agent that the runtime builds at its first use. */
export class Held extends Context.Service<Held, Agent.Agent>()("effect-agent/promise/Agent") {}

/** Calls an agent. Failures have the frames of the call in their stack. */
export class Caller {
  private readonly runtime: ManagedRuntime.ManagedRuntime<Held, unknown>
  private isClosed = false

  constructor(layer: Layer.Layer<Held, unknown>) {
    this.runtime = ManagedRuntime.make(layer)
  }

  /** Runs an effect of the agent for its result. A signal that aborts interrupts it: the promise rejects with its reason. */
  ask<A, E>(use: (agent: Agent.Agent) => Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> {
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const exit = this.isClosed
      ? Promise.resolve(Exit.interrupt())
      : this.runtime.runPromiseExit(Held.use(use), signal === undefined ? undefined : { signal })
    return settled(exit, callerOfMethod(), signal)
  }

  /** Runs an effect that needs no open agent. */
  settle<A, E>(effect: Effect.Effect<A, E>): Promise<A> {
    return settled(Effect.runPromiseExit(effect), callerOfMethod(), undefined)
  }

  /** Reads a stream of the agent, once for each iteration. The stream ends with the agent, after all that it still has. */
  read<A, E>(use: (agent: Agent.Agent) => Stream.Stream<A, E>, signal?: AbortSignal): AsyncIterable<A> {
    const called = callerOfMethod()
    const whileOpen = Effect.suspend(() =>
      this.isClosed ? Effect.die(new AgentClosed()) : Effect.map(this.agent, use)
    )
    return Events.iterable(delivering(Stream.unwrap(whileOpen)), signal, (error) =>
      Inspection.calledFrom(error, called)
    )
  }

  /** Reads a stream that needs no open agent. */
  follow<A, E>(stream: Stream.Stream<A, E>): AsyncIterable<A> {
    const called = callerOfMethod()
    return Events.iterable(delivering(stream), undefined, (error) => Inspection.calledFrom(error, called))
  }

  /** Reads the events of a run. A failure is an event, also one of the layers. */
  readEvents<E>(
    use: (agent: Agent.Agent) => Stream.Stream<AgentEvent, E>,
    signal?: AbortSignal
  ): AsyncIterable<AgentEvent> {
    const events = eventsOnly(Stream.unwrap(Effect.map(this.agent, use)))
    return Events.iterable(delivering(events), signal, () => {})
  }

  /** The agent, built at its first use. */
  private get agent(): Effect.Effect<Agent.Agent, unknown> {
    return Effect.map(this.runtime.contextEffect, (built) => Context.get(built, Held))
  }

  /** Releases the agent. */
  close(): Promise<void> {
    this.isClosed = true
    return this.runtime.dispose()
  }
}

/** The stream runs outside of the runtime, whose `dispose` would interrupt it before it has ended. */
const delivering =
  <A, E>(stream: Stream.Stream<A, E>): Events.Run<A> =>
  (deliver, signal) =>
    Effect.runPromiseExit(Stream.runForEachArray(stream, deliver), { signal })

/** The frames above the method of the agent that used `Caller`. */
const callerOfMethod = (): Called => Inspection.caller().slice(2)

/** The frames of the stack above a call of the agent. */
type Called = ReadonlyArray<string>

/** Adds the call to the stack of a failure. A run that the signal cancelled rejects with the reason of the signal. */
const settled = async <A>(
  running: Promise<Exit.Exit<A, unknown>>,
  called: Called,
  signal: AbortSignal | undefined
): Promise<A> => {
  const exit = await running
  if (Exit.isSuccess(exit)) return exit.value
  const isLeft = Cause.hasInterruptsOnly(exit.cause)
  if (isLeft && signal?.aborted === true) return Promise.reject(signal.reason)
  // But for a signal, only `close` interrupts a call.
  const error = isLeft ? new AgentClosed() : Cause.squash(exit.cause)
  Inspection.calledFrom(error, called)
  return Promise.reject(error)
}
