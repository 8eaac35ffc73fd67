/**
 * A body as bytes that are asked for, one piece at a time, with no stream around them. What a client of ours offers beside
 * the stream of its response, and what the providers read where it is offered.
 */
import * as Context from "effect/Context"
import * as Predicate from "effect/Predicate"

/** The next piece, `undefined` at the end. */
export type Told = (bytes: Uint8Array | undefined) => void
export type Failed = (cause: unknown) => void

export interface ByteSource {
  /** Asks for the next piece, once the last one was told. Tells at once what is here already. */
  readonly read: (told: Told, failed: Failed) => void
  /** Nothing more is read: closes the socket, unless the end has come. */
  readonly cancel: () => void
  /** From now on it is the caller's to cancel, and no `Owner`'s. */
  readonly claim: () => void
}

/** Is given, for each request that it makes, what closes its socket: to be called when the responses are done with. */
export type Own = (close: () => void) => void

/**
 * Who asks may say that it closes what it opened. A client that knows this need not watch for interruptions and for
 * responses that are garbage, which is a good part of what a request costs beyond undici.
 */
export const Owner = Context.Reference<Own | undefined>("effect-agent/ByteSource/Owner", {
  defaultValue: () => undefined
})

/** The property of a response that has its bytes. A text, so that two copies of this package understand each other. */
export const key = "~effect-agent/ByteSource"

export const isByteSource = (value: unknown): value is ByteSource =>
  Predicate.isObject(value) &&
  typeof value["read"] === "function" &&
  typeof value["cancel"] === "function" &&
  typeof value["claim"] === "function"
