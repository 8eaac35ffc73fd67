/**
 * The limit on the requests of a token.
 */
import * as Duration from "effect/Duration"

/**
 * A limit on the requests of a token.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The most requests in the window. */
  readonly requests: number
  /** The length of the window, a duration. Default 1 minute. */
  readonly window?: Duration.Input
}

interface Window {
  readonly end: number
  count: number
}

/** The most tokens and addresses that are known. */
const most = 10_000

export class RateLimit {
  private readonly windows = new Map<string, Window>()
  private readonly options: Options | undefined

  constructor(options: Options | undefined) {
    this.options = options
  }

  /** Counts a request of a token, or of an address, at the time `now`. Returns 0, or the seconds to wait. */
  take(token: string, now: number): number {
    if (this.options === undefined) return 0
    const { requests, window = "1 minute" } = this.options
    const known = this.windows.get(token)
    const current =
      known !== undefined && now < known.end ? known : { end: now + Duration.toMillis(window), count: 0 }
    if (current !== known) {
      const [oldest] = this.windows.keys()
      if (this.windows.size >= most && oldest !== undefined) this.windows.delete(oldest)
      this.windows.delete(token)
      this.windows.set(token, current)
    }
    current.count++
    return current.count <= requests ? 0 : Math.max(1, Math.ceil((current.end - now) / 1000))
  }
}
