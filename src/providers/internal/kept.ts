/**
 * Estimates which sockets a client keeps open for further requests, because clients do not report it.
 *
 * A kept socket may be dead, which shows only when the client sends on it. That is not a failure of the server,
 * so the provider sends the request again on a new socket, independent of the retry policy. But a server that
 * accepts a request and then crashes looks the same, and that request may cost money. So the provider
 * attributes a reset to the socket only if that is likely: a kept socket existed, no byte came back, and the
 * reset came within a second. It does so once for each request and reports it.
 */
export class Kept {
  /** When each socket became idle, in milliseconds of a monotonic clock, ascending. */
  private readonly idle: Array<number> = []
  private isNew = true

  /** Must be called when a response arrives. */
  open(): void {
    this.isNew = false
  }

  /** Must be called when a socket becomes idle. */
  add(now: number): void {
    this.idle.push(now)
  }

  /** The estimated kind of socket that a request uses now. A kept socket is then in use. */
  take(now: number): Socket {
    // Clients use the socket that became idle last. If it is too old, all are.
    const since = this.idle.pop()
    if (since !== undefined && now - since < longestIdle) return "kept"
    this.idle.length = 0
    return this.isNew ? "fresh" : "either"
  }
}

/** After the first response, only the client knows whether it has kept its socket. `either` stands for that. */
export type Socket = "kept" | "fresh" | "either"

/** Whether a reset came as fast as from a dead socket. */
export const isAtOnce = (sent: number, now: number): boolean => now - sent < roundTrip

/** Maximum time for which clients keep a socket, in milliseconds. */
const longestIdle = 5 * 60 * 1000
/** Maximum time in milliseconds until a dead socket reports a reset, on slow lines. */
const roundTrip = 1000
