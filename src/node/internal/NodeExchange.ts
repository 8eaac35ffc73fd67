/**
 * One request over undici and what comes back, as undici's parser tells it. Nobody is told anything from inside of the
 * parser: what arrives in one go is told in one go, after it.
 */
import type * as Undici from "@effect/platform-node/Undici"
import { AsyncResource } from "node:async_hooks"
import type { ByteSource, Failed, Told } from "../../internal/byteSource.ts"
import type { Member, NodeCrowd } from "./NodeCrowd.ts"

/** Told once: the head of the response, or why there is none. */
export interface Waiting {
  readonly head: (status: number, headers: Headers) => void
  readonly failed: Failed
}

export type Headers = Parameters<NonNullable<Undici.Dispatcher.DispatchHandler["onResponseStart"]>>[2]

export class NodeExchange
  extends AsyncResource
  implements Undici.Dispatcher.DispatchHandler, ByteSource, Member
{
  private readonly crowd: NodeCrowd
  private controller: Undici.Dispatcher.DispatchController | undefined = undefined
  /** Who waits for the head. A response is not known here: one that nobody has any more is to be found garbage. */
  private waiting: Waiting | undefined
  private head: { readonly status: number; readonly headers: Headers } | undefined = undefined
  private reader: { readonly told: Told; readonly failed: Failed } | undefined = undefined
  private pieces: Array<Uint8Array> = []
  /** Bytes in `pieces`. */
  private size = 0
  private over: { readonly cause?: unknown } | undefined = undefined
  private isTelling = false

  constructor(waiting: Waiting, crowd: NodeCrowd) {
    super("effect-agent/NodeExchange")
    this.waiting = waiting
    this.crowd = crowd
    crowd.join()
  }

  get isOver(): boolean {
    return this.over !== undefined
  }

  read(told: Told, failed: Failed): void {
    if (this.size > 0) told(this.take())
    else if (this.over === undefined) this.reader = { told, failed }
    else if ("cause" in this.over) failed(this.over.cause)
    else told(undefined)
  }

  cancel(): void {
    if (this.over === undefined) this.abort(new Error("The response was not read to its end"))
  }

  /** Closes the socket, and drops what was not read. Whoever waits is told `reason`. */
  abort(reason: Error): void {
    if (this.over !== undefined) return
    this.end({ cause: reason })
    this.pieces = []
    this.size = 0
    this.controller?.abort(reason)
  }

  /** All that is here, as one piece: what came in many costs its reader no more. */
  private take(): Uint8Array {
    const [first] = this.pieces
    const isOne = first !== undefined && first.length === this.size
    const bytes = isOne ? first : Buffer.concat(this.pieces, this.size)
    this.pieces = []
    this.size = 0
    // Not at once: undici must not be parsing, here or on another socket, and may have more to tell right away.
    if (this.controller?.paused === true) queueMicrotask(() => this.controller?.resume())
    return bytes
  }

  private end(how: { readonly cause?: unknown }): void {
    if (this.over === undefined) {
      this.over = how
      this.crowd.leave()
    }
    this.wake()
  }

  private wake(): void {
    if (this.isTelling) return
    this.isTelling = true
    this.crowd.tell(this)
  }

  readonly tell = (): void => {
    this.isTelling = false
    const { head, over, reader, waiting } = this
    if (waiting !== undefined && head !== undefined) {
      this.waiting = undefined
      waiting.head(head.status, head.headers)
    } else if (waiting !== undefined && over !== undefined) {
      this.waiting = undefined
      waiting.failed(over.cause)
    } else if (reader !== undefined && (this.size > 0 || over !== undefined)) {
      this.reader = undefined
      this.read(reader.told, reader.failed)
    }
  }

  // ───────────────────────── what undici calls

  onRequestStart(controller: Undici.Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.over !== undefined) controller.abort(new Error("The request was aborted before it was sent"))
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    // Not the answer yet.
    if (status < 200) return
    this.head = { status, headers }
    this.wake()
  }

  onResponseData(controller: Undici.Dispatcher.DispatchController, piece: Uint8Array): void {
    if (this.over !== undefined) return
    this.pieces.push(piece)
    this.size += piece.length
    if (this.size >= most) controller.pause()
    if (this.reader !== undefined) this.wake()
  }

  onResponseEnd(): void {
    this.end({})
  }

  onResponseError(_: unknown, cause: unknown): void {
    this.end({ cause })
  }
}

/** Bytes ahead of the reader, as a stream of Node would have them. */
const most = 64 * 1024
