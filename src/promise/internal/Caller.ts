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
import { AgentClosed, setStack } from "../../internal/errors.ts"
import { eventsOnly } from "../../internal/eventsOnly.ts"

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
    return iterable(delivering(Stream.unwrap(whileOpen)), signal, (error) => calledFrom(error, called))
  }

  /** Reads a stream that needs no open agent. */
  follow<A, E>(stream: Stream.Stream<A, E>): AsyncIterable<A> {
    const called = callerOfMethod()
    return iterable(delivering(stream), undefined, (error) => calledFrom(error, called))
  }

  /** Reads the events of a run. A failure is an event, also one of the layers. */
  readEvents<E>(
    use: (agent: Agent.Agent) => Stream.Stream<AgentEvent, E>,
    signal?: AbortSignal
  ): AsyncIterable<AgentEvent> {
    const events = eventsOnly(Stream.unwrap(Effect.map(this.agent, use)))
    return iterable(delivering(events), signal, () => {})
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
  <A, E>(stream: Stream.Stream<A, E>): Run<A> =>
  (deliver, signal) =>
    Effect.runPromiseExit(Stream.runForEachArray(stream, deliver), { signal })

/** The frames above the method of the agent that used `Caller`. */
const callerOfMethod = (): Called => stackOfCaller().slice(2)

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
  calledFrom(error, called)
  return Promise.reject(error)
}

// ───────────────────────── Events

// A stream for `for await`. One fiber reads the stream and hands over whole arrays, so that an element of an array costs a settled
// promise, not a fiber.

/** Hands an array to the reader, and suspends until the reader has read it and wants more. */
type Deliver<A> = (batch: ReadonlyArray<A>) => Effect.Effect<void>

/** Runs the delivery. Resolves after its orderly end, which `signal` requests. Never rejects. */
type Run<A> = (deliver: Deliver<A>, signal: AbortSignal) => Promise<Exit.Exit<void, unknown>>

interface Waiting<A> {
  readonly resolve: (result: IteratorResult<A, undefined>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Returns the elements that `run` delivers, once for each iteration, from the first `next` on.
 *
 * A reader that leaves early interrupts the delivery and waits for its end. The signal does so too, and fails the iteration with its
 * reason. `failed` gets any other failure before the reader does.
 */
const iterable = <A>(
  run: Run<A>,
  signal: AbortSignal | undefined,
  failed: (error: unknown) => void
): AsyncIterable<A> => ({
  [Symbol.asyncIterator]: () => new Reading(run, signal, failed)
})

const done = { done: true, value: undefined } as const

class Reading<A> implements AsyncIterator<A, undefined> {
  private readonly run: Run<A>
  private readonly signal: AbortSignal | undefined
  private readonly failed: (error: unknown) => void
  private readonly stop = new AbortController()
  /** Settles after the end of the delivery. */
  private running: Promise<void> | undefined
  private batch: ReadonlyArray<A> = []
  private at = 0
  /** Oldest first; more than one only where a reader calls `next` before the last one has resolved. */
  private readonly waiting: Array<Waiting<A>> = []
  private wakeDeliverer: (() => void) | undefined
  private ended: Exit.Exit<void, unknown> | undefined
  private left = false

  constructor(run: Run<A>, signal: AbortSignal | undefined, failed: (error: unknown) => void) {
    this.run = run
    this.signal = signal
    this.failed = failed
  }

  next(): Promise<IteratorResult<A, undefined>> {
    if (this.left) return Promise.resolve(done)
    if (this.running === undefined) this.running = this.begin()
    const ready = this.take()
    if (ready !== undefined) return Promise.resolve(ready)
    if (this.ended !== undefined) return this.end(this.ended)
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      const wake = this.wakeDeliverer
      this.wakeDeliverer = undefined
      wake?.()
    })
  }

  async return(): Promise<IteratorResult<A, undefined>> {
    this.left = true
    this.batch = []
    this.stop.abort()
    await this.running
    return done
  }

  async throw(error: unknown): Promise<IteratorResult<A, undefined>> {
    await this.return()
    return Promise.reject(error)
  }

  /** Delivers until the end, and then settles the calls of `next` that wait. */
  private async begin(): Promise<void> {
    if (this.signal?.aborted === true) {
      this.ended = Exit.interrupt()
      return
    }
    this.signal?.addEventListener("abort", this.onAbort, { once: true })
    const exit = await this.run(this.deliver, this.stop.signal)
    this.signal?.removeEventListener("abort", this.onAbort)
    this.ended = exit
    const [first, ...others] = this.waiting.splice(0)
    if (first !== undefined) void this.end(exit).then(first.resolve, first.reject)
    for (const { resolve } of others) resolve(done)
  }

  private readonly onAbort = (): void => {
    this.batch = []
    this.stop.abort()
  }

  private readonly deliver: Deliver<A> = (batch) =>
    Effect.suspend(() => {
      this.batch = batch
      this.at = 0
      while (this.waiting.length > 0) {
        const ready = this.take()
        if (ready === undefined) break
        this.waiting.shift()?.resolve(ready)
      }
      return this.waiting.length > 0 ? Effect.void : this.wanted
    })

  /** Waits until the reader has read all and calls `next` again. */
  private readonly wanted = Effect.callback<void>((resume) => {
    this.wakeDeliverer = () => resume(Effect.void)
  })

  private take(): IteratorResult<A, undefined> | undefined {
    const value = this.batch[this.at]
    if (value === undefined) return undefined
    this.at++
    return { done: false, value }
  }

  /** Resolves or rejects once; all later calls of `next` are done. */
  private end(exit: Exit.Exit<void, unknown>): Promise<IteratorResult<A, undefined>> {
    this.left = true
    if (Exit.isSuccess(exit)) return Promise.resolve(done)
    if (!Cause.hasInterruptsOnly(exit.cause)) {
      const error = Cause.squash(exit.cause)
      this.failed(error)
      return Promise.reject(error)
    }
    return this.signal?.aborted === true ? Promise.reject(this.signal.reason) : Promise.resolve(done)
  }
}

// ───────────────────────── What the console shows

/**
 * Ends the stack with the frames of `caller`, in place of those of Effect's fibers: that of the error, or of the cause of a failure that
 * is no error, such as `ConfigError`.
 */
export const calledFrom = (error: unknown, called: ReadonlyArray<string>): void => {
  const shown = error instanceof Error ? error : causeOf(error)
  if (shown === undefined || called.length === 0 || known.has(shown)) return
  known.add(shown)
  setStack(shown, [...framesOf(shown), ...called])
}

/** The frames above the function that asks, which is itself left out. None where stacks are written in another way. */
export const stackOfCaller = (): ReadonlyArray<string> =>
  framesIn(new Error().stack ?? "")
    .slice(2)
    .filter((frame) => !frame.includes("node:internal/"))

const known = new WeakSet<Error>()

const causeOf = (error: unknown): Error | undefined =>
  typeof error === "object" && error !== null && "cause" in error && error.cause instanceof Error
    ? error.cause
    : undefined

/** The frames before those of Effect. */
const framesOf = ({ stack = "" }: Error): ReadonlyArray<string> => {
  const frames = framesIn(stack)
  const end = frames.findIndex((frame) => ofEffect.test(frame))
  return end === -1 ? frames : frames.slice(0, end)
}

const framesIn = (stack: string): ReadonlyArray<string> =>
  stack.split("\n").filter((line) => line.startsWith("    at "))

const ofEffect = /~effect\/|Generator\.next|FiberImpl\.|\/node_modules\/effect\//
