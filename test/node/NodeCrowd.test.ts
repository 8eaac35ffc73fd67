import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AsyncResource } from "node:async_hooks"
import { type Member, NodeCrowd } from "../../src/node/internal/NodeCrowd.ts"

/** The rest of a turn of the event loop. */
const turn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** A crowd of so many, and the numbers of those that were sent and that told. */
const crowdOf = (size: number) => {
  const crowd = new NodeCrowd()
  const sent: Array<number> = []
  const told: Array<number> = []
  const members = Array.from({ length: size }, (_, index): Member & { isOver: boolean } => {
    crowd.join()
    return Object.assign(new AsyncResource("member"), { isOver: false, tell: () => told.push(index) })
  })
  const send = (index: number) => {
    const member = members[index]
    if (member !== undefined) crowd.send(member, () => sent.push(index))
  }
  return { crowd, members, send, sent, told }
}

describe("a crowd", () => {
  it.live("keeps nobody waiting while there are few", () =>
    Effect.gen(function* () {
      const { crowd, members, send, sent, told } = crowdOf(4)
      for (const index of members.keys()) send(index)
      assert.deepStrictEqual(sent, [0, 1, 2, 3])
      for (const member of members) crowd.tell(member)
      assert.deepStrictEqual(told, [])
      yield* Effect.promise(() => Promise.resolve())
      assert.deepStrictEqual(told, [0, 1, 2, 3])
    })
  )

  it.live("tells at the end of a turn what came in it", () =>
    Effect.gen(function* () {
      const { crowd, members, told } = crowdOf(5)
      for (const member of members) crowd.tell(member)
      yield* Effect.promise(() => Promise.resolve())
      assert.deepStrictEqual(told, [])
      yield* turn
      assert.deepStrictEqual(told, [0, 1, 2, 3, 4])
    })
  )

  it.live("sends the latest first, and forgets none of the others", () =>
    Effect.gen(function* () {
      const { members, send, sent } = crowdOf(1000)
      for (let index = 0; index < 100; index++) send(index)
      yield* turn
      assert.strictEqual(sent.length, 64)
      assert.includeMembers(sent, [0, 7, 99])
      assert.notInclude(sent, 8)
      // However many come behind it.
      let next = 100
      for (let turns = 0; turns < 8; turns++) {
        for (let count = 0; count < 64; count++) send(next++)
        yield* turn
      }
      assert.include(sent, 43)
      while (sent.length < next) yield* turn
      assert.strictEqual(new Set(sent).size, next)
      assert.isBelow(next, members.length)
    })
  )

  it.live("does not send what is over", () =>
    Effect.gen(function* () {
      const { members, send, sent } = crowdOf(10)
      for (const index of members.keys()) send(index)
      const [first] = members
      if (first !== undefined) first.isOver = true
      yield* turn
      assert.deepStrictEqual(sent, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    })
  )

  it.live("is none any more when most have left", () =>
    Effect.gen(function* () {
      const { crowd, send, sent } = crowdOf(10)
      send(0)
      for (let count = 0; count < 6; count++) crowd.leave()
      send(1)
      assert.deepStrictEqual(sent, [1])
      yield* turn
      assert.deepStrictEqual(sent, [1, 0])
    })
  )
})
