/**
 * The hosts that a server answers to, against pages that let their own name resolve to the address of the server.
 */
import type { HttpServerRequest } from "effect/http/HttpServerRequest"

/** The host of a request with its port, in lower case: the header `Host`, or that of its URL for a runtime that keeps the header. */
export const of = ({ headers, originalUrl }: HttpServerRequest): string =>
  (headers["host"] ?? /^https?:\/\/([^/?#]+)/i.exec(originalUrl)?.[1] ?? "").toLowerCase()

/** A host without its port, in lower case. */
export const nameOf = (host: string): string => host.toLowerCase().replace(/:\d+$/, "")

/** Whether a host is one of the names, at any port. */
export const allows = (names: ReadonlyArray<string>, host: string): boolean => {
  const name = nameOf(host)
  return name !== "" && names.includes(name)
}

/** The names of this machine that no other one has. */
export const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]
