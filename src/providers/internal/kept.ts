/**
 * The sockets that a client keeps for its next requests, as far as can be told without asking it.
 *
 * A kept socket may have died, which shows only when something is sent on it: that is no failure of the server, and a
 * fresh socket is tried at once, whatever the patience with failures is. But a server that takes a request and then
 * breaks down looks the same, and the request may have been paid for. So a reset is laid to the socket only where that is
 * likely: one was there to be used again, not a byte came back, and all of it was over at once. It is laid to it once
 * per request, and it is told.
 */
export class Kept {
  /** When each of them was put away, in milliseconds that no change of the time of day moves: the oldest first. */
  private readonly idle: Array<number> = []
  private isNew = true

  /** A response comes. */
  open(): void {
    this.isNew = false
  }

  /** A socket is there to be used again from now on. */
  add(now: number): void {
    this.idle.push(now)
  }

  /** What a request that goes out now goes over, as far as can be told. A kept socket is in use then. */
  take(now: number): Socket {
    // Clients take the one that was put away last: if that is too old, all are.
    const since = this.idle.pop()
    if (since !== undefined && now - since < longestIdle) return "kept"
    this.idle.length = 0
    return this.isNew ? "fresh" : "either"
  }
}

/** Once there has been a response, only the client knows whether it has kept its socket. */
export type Socket = "kept" | "fresh" | "either"

/** Whether a reset came as soon as it comes of a socket that was dead. */
export const isAtOnce = (sent: number, now: number): boolean => now - sent < roundTrip

/** No client keeps a socket for longer. */
const longestIdle = 5 * 60 * 1000
/** What a dead socket takes to say so, over the slowest of lines. */
const roundTrip = 1000
