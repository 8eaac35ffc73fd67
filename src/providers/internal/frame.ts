/** The frames of an answer, and their reader. */
import type { Reason } from "../../ProviderError.ts"

/**
 * One event of an answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Frame {
  /** The name of the event, empty if it has none. A frame named `error` reports a failure, in any protocol. */
  readonly event: string
  /** The data of the event, usually JSON. */
  readonly data: string
}

/**
 * Reads the frames of one answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Reader {
  /** Appends the frames that these bytes complete. A connection may cut the bytes anywhere. */
  readonly push: (bytes: Uint8Array, out: Array<Frame>) => void
  /** Appends the frames that the end of the body completes. */
  readonly end: (out: Array<Frame>) => void
  /** The text outside of frames, such as an error that a server printed between them. */
  readonly stray: string
  /** Why the reader cannot continue: a frame is too large, or damaged. `undefined` while it can. It then ignores further bytes. */
  readonly problem: Reason | undefined
}
