/**
 * What a client of ours offers beside Effect's interface, and the providers use where it is offered: to send a request in
 * one step, and to read a body as bytes that are asked for, one piece at a time, with no stream around them.
 */
import type * as Context from "effect/Context"
import type * as Exit from "effect/Exit"
import type { HttpClient } from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Predicate from "effect/Predicate"

/** The next piece, `undefined` at the end. */
export type Told = (bytes: Uint8Array | undefined) => void
export type Failed = (cause: unknown) => void

export interface ByteSource {
  /** Asks for the next piece, once the last one was told. Tells at once what is here already. */
  readonly read: (told: Told, failed: Failed) => void
  /** Nothing more is read: closes the socket, unless the end has come. */
  readonly cancel: () => void
}

/**
 * Sends a request, tells once what came of it, and returns what closes its socket. That is all the watching there is: who
 * sends has to close what he does not read to its end. A client that has to see to that itself, whatever becomes of its
 * callers and its responses, spends a good part of a request on it.
 */
export type Send = (
  request: HttpClientRequest,
  told: (exit: Exit.Exit<HttpClientResponse, HttpClientError>) => void
) => () => void

/** The property of a client and of a response. A text, so that two copies of this package understand each other. */
export const key = "~effect-agent/ByteSource"

/** A client with another way in; not where a service asks for something that only the usual one has. */
export interface Sender {
  readonly [key]: (services: Context.Context<never>) => Send | undefined
}

/** The other way in of a client, if it has one. A client made of that client has not: it may do more than send. */
export const sendOf = (client: HttpClient, services: Context.Context<never>): Send | undefined =>
  isSender(client) ? client[key](services) : undefined

const isSender = (client: object): client is Sender =>
  Object.hasOwn(client, key) && Predicate.hasProperty(client, key) && typeof client[key] === "function"

export const isByteSource = (value: unknown): value is ByteSource =>
  Predicate.isObject(value) && typeof value["read"] === "function" && typeof value["cancel"] === "function"
