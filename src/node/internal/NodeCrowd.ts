/**
 * The requests that are under way at the same time over one client.
 *
 * A step of a request is hundreds of small functions. Where many answers come in one turn of the event loop, taking the
 * first of them through all its steps, up to the next request of its conversation, and only then the second one, finds
 * none of these functions in the processor's caches when it is called again, and that is a quarter of all the time. So in
 * a crowd what came in one turn is told at the end of that turn, one right after the other, and requests go out then, too.
 * Where there are few, nobody waits.
 */
import type { AsyncResource } from "node:async_hooks"

/** One of them. What is done for it is done as if by who asked for it. */
export interface Member extends Pick<AsyncResource, "runInAsyncScope"> {
  /** Nothing of it is to be sent any more. */
  readonly isOver: boolean
  /** Tells what has come. */
  readonly tell: () => void
}

interface Waiting {
  readonly member: Member
  readonly send: () => void
}

export class NodeCrowd {
  private size = 0
  private isWatching = false
  private telling: Array<Member> = []
  private readonly waiting: Array<Waiting> = []

  join(): void {
    this.size++
  }

  leave(): void {
    this.size--
  }

  /** Sends a request: now, or later unless it is over by then. */
  send(member: Member, send: () => void): void {
    if (this.size <= few) return send()
    this.waiting.push({ member, send })
    this.watch()
  }

  /** Has a member tell what has come, in a microtask. */
  tell(member: Member): void {
    if (this.size <= few) return queueMicrotask(member.tell)
    this.telling.push(member)
    this.watch()
  }

  private watch(): void {
    if (this.isWatching) return
    this.isWatching = true
    setImmediate(this.goOn)
  }

  private readonly goOn = (): void => {
    this.isWatching = false
    const telling = this.telling
    this.telling = []
    for (const member of telling) member.runInAsyncScope(queueMicrotask, undefined, member.tell)
    this.sendSome()
    if (this.waiting.length > 0) this.watch()
  }

  /**
   * Who asked last is in the middle of a conversation, mostly, and the sooner that is over the less goes on at the same
   * time. Some of those who have waited longest go each time, so that nobody waits for ever.
   */
  private sendSome(): void {
    const oldest = this.waiting.splice(0, fair)
    const latest = this.waiting.splice(fair - atOnce)
    for (const { member, send } of [...oldest, ...latest]) {
      if (!member.isOver) member.runInAsyncScope(send)
    }
  }
}

/** As many as are no crowd. */
const few = 4
/** How many requests go out in one turn, so that answers do not wait for long, and how many of them are the oldest. */
const atOnce = 64
const fair = 8
