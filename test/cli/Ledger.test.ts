import { assert, describe, it } from "@effect/vitest"
import * as Ledger from "../../src/cli/files/Ledger.ts"
import type * as Version from "../../src/cli/files/Version.ts"

const absent: Version.Version = { kind: "absent" }
const version = (hash: string): Version.Version => ({ kind: "file", hash, kept: true })

const file = (
  runId: string,
  path: string,
  before: Version.Version,
  after: Version.Version
): Ledger.Record => ({
  type: "file",
  id: `${runId} ${path}`,
  runId,
  path,
  before,
  after
})

describe("the records of what calls change", () => {
  it("drop a change that was not made from its own run, so that the newest one stays the newest", () => {
    const { back } = [
      file("run 1", "notes.txt", absent, version("a")),
      file("run 2", "x.txt", absent, version("b")),
      {
        type: "end",
        id: "settled",
        runId: "run 1",
        changes: [{ path: "notes.txt", before: version("a"), after: absent }],
        notKept: []
      } as const
    ].reduce(Ledger.step, Ledger.initial)
    assert.deepStrictEqual(
      back.map(({ changes, runId }) => [runId, changes.map(({ path }) => path)]),
      [["run 2", ["x.txt"]]]
    )
  })
})
