/**
 * What a client of ours offers beside Effect's interface, and the providers use where it is offered: to send a request in
 * one step, and to read a body as bytes that are asked for, one piece at a time, with no stream around them.
 */
import type * as Context from "effect/Context"
import type { HttpClient } from "effect/http/HttpClient"
import * as Predicate from "effect/Predicate"

/** The next piece, `undefined` at the end. */
export type Told<Piece = Uint8Array> = (bytes: Piece | undefined) => void
export type Failed = (cause: unknown) => void

export interface ByteSource<Piece = Uint8Array> {
  /** Asks for the next piece, once the last one was told. Tells at once what is here already. */
  readonly read: (told: Told<Piece>, failed: Failed) => void
  /** Nothing more is read: closes the socket, unless the end has come. */
  readonly cancel: () => void
}

/** A request. The names of its headers are in lower case. */
export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The head of a response, and what its body is read from. */
export interface Answered {
  readonly status: number
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: ByteSource
}

/**
 * Sends a request, tells once what came of it, and returns what closes its socket. That is all the watching there is: who
 * sends has to close what he does not read to its end. A client that has to see to that itself, whatever becomes of its
 * callers and its responses, spends a good part of a request on it.
 */
export type Send = (asked: Asked, answered: (answered: Answered) => void, failed: Failed) => () => void

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

/** The same as a stream of the web, which reads nothing before it is asked to. */
export const toReadable = <Piece>(bytes: ByteSource<Piece>): ReadableStream<Piece> =>
  new ReadableStream(
    {
      pull: (controller) =>
        new Promise((resolve, reject) => {
          bytes.read((piece) => {
            if (piece === undefined) controller.close()
            else controller.enqueue(piece)
            resolve()
          }, reject)
        }),
      cancel: () => bytes.cancel()
    },
    { highWaterMark: 0 }
  )
