/**
 * An agent on a real server that misbehaves: what is said and done, and what must hold whatever happens.
 */
import { assert } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Exit, Fiber, Layer, Option, Schedule, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ModelEvent, ProviderError } from "effect-agent"
import { Agent, AgentEvent, Message, Provider, Tool, Transcript } from "effect-agent"
import type { ServerResponse } from "node:http"
import { inspect } from "node:util"
import { failureOf, ofTag, settle } from "../behaviour/play.ts"
import { type Server, stream } from "../providers/server.ts"
import type { Options, Piece, Vendor } from "./vendors.ts"

/** Of every vendor. Must never show. */
export const key = "sk-planted-0123456789abcdef"

export interface Setup extends Omit<Options, "baseUrl"> {
  readonly tools?: ReadonlyArray<Tool.Runnable>
}

/** An agent that asks this server, with the defaults that an application gets. */
export const agentOn = (vendor: Vendor, { baseUrl }: Pick<Server, "baseUrl">, setup: Setup = {}) => {
  const { tools = [], ...options } = setup
  return Agent.make({ model: "m-1", tools }).pipe(Effect.provide(providerOf(vendor, { baseUrl, ...options })))
}

const providerOf = (vendor: Vendor, options: Options) =>
  Layer.provide(
    vendor.layerConfig(options),
    ConfigProvider.layer(ConfigProvider.fromUnknown({ [vendor.keyName]: key }))
  )

/** Prompts a new agent. Time passes only while a retry is waited for. */
export const play = Effect.fnUntraced(function* (
  vendor: Vendor,
  server: Pick<Server, "baseUrl">,
  setup?: Setup
) {
  return yield* prompt(yield* agentOn(vendor, server, setup))
})

/** What a prompt came to. A clock that runs by itself (`it.live`) waits for retries as users do. */
export const prompt = Effect.fnUntraced(function* (agent: Agent.Agent) {
  const events: Array<AgentEvent.AgentEvent> = []
  const exit = yield* agent.stream("Hi").pipe(
    Stream.tap((event) =>
      event._tag === "ModelCallRetry" ? Effect.forkChild(pass(event.delayMs)) : Effect.void
    ),
    Stream.runForEach((event) => Effect.sync(() => events.push(event))),
    Effect.exit
  )
  const { messages } = yield* agent.state.get
  assert.deepStrictEqual(Transcript.violations(messages), [])
  assert.notInclude(shown(events, exit), key.slice(0, -4))
  const failure = failureOf(exit)?.reason
  const last = messages.findLast((message) => message.role === "assistant")
  return {
    events,
    exit,
    messages,
    /** The last answer, whatever became of it. */
    last,
    text: last === undefined ? "" : Message.textOf(last),
    retries: ofTag(events, "ModelCallRetry"),
    /** Why the provider failed. */
    reason: failure?._tag === "ProviderError" ? failure.reason : undefined
  }
})

/** What the vendor's provider says of one answer, and why it stops. */
export const hear = Effect.fnUntraced(function* (vendor: Vendor, { baseUrl }: Pick<Server, "baseUrl">) {
  return yield* heardOf(yield* providerOn(vendor, baseUrl))
})

/** The vendor's provider alone. It asks once. */
export const providerOn = (vendor: Vendor, baseUrl: string) =>
  Effect.provide(Provider.Provider, providerOf(vendor, { baseUrl, retry: { schedule: Schedule.recurs(0) } }))

/** One answer of a provider, and why it stops. */
export const heardOf = Effect.fnUntraced(function* (provider: Provider.Provider["Service"]) {
  const events: Array<ModelEvent.ModelEvent> = []
  const request = { model: "m-1", messages: [Message.user("Hi", 0)], tools: [], options: {} }
  const exit = yield* provider.stream(request).pipe(
    Stream.runForEach((event) => Effect.sync(() => events.push(event))),
    Effect.exit
  )
  const failed = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
  return { events, reason: failed?._tag === "ProviderError" ? failed.reason : undefined }
})

/** A tool, and what it was called with. */
export const recorder = () => {
  const calls: Array<string> = []
  const tool = Tool.make({
    name: "echo",
    description: "Gives back what it is told.",
    params: Schema.Struct({ text: Schema.String }),
    execute: ({ text }) =>
      Effect.as(
        Effect.sync(() => calls.push(text)),
        `heard ${text}`
      )
  })
  return { calls, tool }
}

/** Waits for a run that should be over by now, however much the clock of the test still stands. */
export const ended = <A, E>(run: Fiber.Fiber<A, E>): Effect.Effect<A, E> => soon(Fiber.join(run))

/** Waits for what should happen by now, and not for ever. */
export const soon = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.raceFirst(effect, tooLong)

const tooLong = Effect.callback<never>((resume) => {
  const timer = setTimeout(() => resume(Effect.die(new Error("It did not happen"))), 5000)
  return Effect.sync(() => clearTimeout(timer))
})

/** Lets the provider begin to wait, and the wait be over. */
const pass = (millis: number) => Effect.andThen(settle(), TestClock.adjust(millis))

/** All that a program could print of a run. */
export const shown = <A, E>(events: ReadonlyArray<AgentEvent.AgentEvent>, exit: Exit.Exit<A, E>): string =>
  [
    JSON.stringify(events),
    JSON.stringify(exit),
    inspect(exit, { depth: 20 }),
    Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
  ].join("\n")

/** The tag of a reason, and its kind where it has one. */
export const told = (reason: ProviderError.Reason | undefined) =>
  reason === undefined ? undefined : "kind" in reason ? `${reason._tag} ${reason.kind}` : reason._tag

/** The events as they are sent. */
export const bytes = (pieces: ReadonlyArray<Piece>): string => pieces.map(block).join("")

export const block = ({ data, name }: Piece): string => {
  const text = typeof data === "string" ? data : JSON.stringify(data)
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`
}

/** The events up to and with the `count`th of a kind. */
export const until = (pieces: ReadonlyArray<Piece>, kind: Piece["kind"], count = 1): ReadonlyArray<Piece> => {
  const places = pieces.flatMap((piece, index) => (piece.kind === kind ? [index + 1] : []))
  return pieces.slice(0, places[count - 1] ?? 0)
}

/** Answers with all of these events, and ends. */
export const answer = (response: ServerResponse, pieces: ReadonlyArray<Piece>) =>
  stream(response).end(bytes(pieces))

export const reset = (response: ServerResponse) => response.socket?.resetAndDestroy()
