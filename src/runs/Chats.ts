/** The pages that follow each chat, by their requests that have not ended. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** A chat of which pages have requests. */
export interface Chat {
  /** Held by a request that looks at the run of the chat and begins another one. */
  readonly lock: Semaphore.Semaphore
  /** The number of pages that follow the run of the chat. */
  readonly followers: SubscriptionRef.SubscriptionRef<number>
}

export type Chats = RcMap.RcMap<string, Chat>

export const make: Effect.Effect<Chats, never, Scope.Scope> = RcMap.make({
  lookup: (_chatId: string) =>
    Effect.map(SubscriptionRef.make(0), (followers) => ({ lock: Semaphore.makeUnsafe(1), followers }))
})

/** Counts a page as a follower of the chat until its request ends. */
export const follow = ({ followers }: Chat): Effect.Effect<void, never, Scope.Scope> => {
  const add = (pages: number) => SubscriptionRef.update(followers, (others) => others + pages)
  return Effect.acquireRelease(add(1), () => add(-1))
}

/** The time in which the server sees that a page has left. */
const patience = "1 second"

/** Whether no page follows the chat, or the last one is about to leave. */
export const isLeft = ({ followers }: Chat): Effect.Effect<boolean> =>
  SubscriptionRef.changes(followers).pipe(
    Stream.filter((pages) => pages === 0),
    Stream.runHead,
    Effect.timeoutOption(patience),
    Effect.map(Option.isSome)
  )
